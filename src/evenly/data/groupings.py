"""Attributes that divide the examples into groups, and the names of these groups.

Shapes: N examples.
"""

import torch

from evenly.data.labelled import EMPTY, MOST_VALUES, Labelled


def groupings(data: Labelled) -> list[str]:
    """The attributes that divide the examples into groups, in their order.

    Not one with a single value or with very many, nor the label under another name, nor a number of each example, such
    as `index` in an exported manifest.

    >>> column = {"index": torch.arange(4), "place": torch.tensor([0, 1, 1, 1]), "day": torch.zeros(4).long()}
    >>> groupings(Labelled(torch.zeros(4, 1), torch.tensor([0, 0, 1, 1]), ("a", "b"), column))
    ['place']
    """
    labels_N = data.labels.cpu()
    found = []
    for name, values_N in data.attributes.items():
        num_values = len(set(values_N.tolist()))
        if 1 < num_values <= MOST_VALUES and num_values < len(values_N) and not torch.equal(values_N.cpu(), labels_N):
            found.append(name)
    return found


def name_of_value(data: Labelled, attribute: str, value: int) -> str:
    """The name of an attribute's value, or its number where it has none.

    >>> tag = {"tag": torch.tensor([0, 1, 2])}
    >>> data = Labelled(torch.zeros(3, 1), torch.tensor([0, 1, 1]), ("a", "b"), tag, values={"tag": ("", "red")})
    >>> [name_of_value(data, "tag", value) for value in (0, 1, 2)]
    ['(empty)', 'red', '2']
    """
    names = data.values.get(attribute, ())
    return (names[value] or EMPTY) if 0 <= value < len(names) else str(value)
