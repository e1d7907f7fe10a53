"""From scenes to class probabilities: classifiers, and models that join them with features."""
