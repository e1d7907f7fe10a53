"""What a map promises: samples to label, certified thresholds, accuracies and areas."""
