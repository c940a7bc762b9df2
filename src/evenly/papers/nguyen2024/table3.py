"""Table 3: SAM on the original data, on randomly upsampled data, and on USEFUL's."""

from evenly.papers.nguyen2024.table2 import selection

EXPERIMENTS = (
    selection("table3", "cifar10", "sam", plain=4.23, random=4.17, useful=4.04),
    selection("table3", "cifar100", "sam", plain=21.25, random=21.11, useful=20.66),
)
