"""Find the web address that somebody wrote into a sentence."""

import re

# An address ends at white space, quotes, brackets and Chinese punctuation: none of them is in one as it is.
_ADDRESS = re.compile(r"https?://[^\s<>\"'`{}|\\^\[\]，。；：！？、（）【】《》「」“”‘’]+", re.IGNORECASE)


def first_address(text: str) -> str | None:
    """Return the first http or https address in `text`, without the punctuation that ends the sentence."""
    found = _ADDRESS.search(text)
    if found is None:
        return None
    address = found[0].rstrip(".,;:!?*_")
    while address.endswith(")") and address.count(")") > address.count("("):
        address = address[:-1].rstrip(".,;:!?*_")
    return address
