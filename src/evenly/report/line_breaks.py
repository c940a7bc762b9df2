"""Where a text of a figure breaks into lines, by the metrics of its font."""


def wrap(text: str, *, points: float, inches: float, bold: bool = False) -> list[str]:
    """A text in as few lines as fit into `inches` at this font size, by the font's own metrics, about equally long.

    >>> wrap("one two three four", points=12, inches=1.4)
    ['one two', 'three four']
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=points, weight="bold" if bold else "normal")

    def lines(most: float) -> list[str]:
        filled = [""]
        for word in text.split():
            longer = f"{filled[-1]} {word}".strip()
            # A lone $ would begin mathematics; its width is that of a letter either way.
            width = text_to_path.get_text_width_height_descent(longer.replace("$", "S"), font, ismath=False)[0] / 72
            if width <= most or not filled[-1]:
                filled[-1] = longer
            else:
                filled.append(word)
        return filled

    widest = lines(inches)
    narrower = (lines(inches * share / 20) for share in range(10, 20))
    return next((each for each in narrower if len(each) == len(widest)), widest) if len(widest) > 1 else widest
