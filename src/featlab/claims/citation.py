"""Who wrote a theorem's paper, and when, from its BibTeX."""

from __future__ import annotations


def paper_of(reference: str) -> str:
    """The family names of one or two authors, or the first of more, and the year, from BibTeX."""
    fields = {}
    for line in reference.replace(", author", ",\n author").replace(", year", ",\n year").splitlines():
        key, equals, value = line.partition("=")
        if equals:
            fields[key.strip().lower()] = value.strip().strip(",}{ ")
    names = [author.split(",")[0].strip() for author in fields.get("author", "").split(" and ")]
    authors = " and ".join(names) if len(names) <= 2 and "others" not in names else f"{names[0]} et al."
    return f"{authors} {fields.get('year', '')}".strip()
