"""The checks of `evenly doctor --gpu`."""
