"""torchvision as an oracle: its compiled operators may not fit the torch at hand, its transforms do not need them."""

from evenly.integrations.torchvision import torchvision as torchvision
