"""From scenes to class probabilities: features, classifiers and the models that hold both."""
