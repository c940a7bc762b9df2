"""A GPU, put to the test: the checks of `evenly doctor --gpu`."""
