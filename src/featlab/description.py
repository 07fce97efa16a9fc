"""placeholder"""


def describe(e):
    return ""
