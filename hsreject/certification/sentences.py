"""Sentences about guarantees, for people: nothing is decided by them."""

from hsreject.templates import sentences

sentence = sentences("hsreject.certification")
