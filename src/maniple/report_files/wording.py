"""What stands in a document besides the report itself, in English and Chinese."""

from dataclasses import dataclass
from datetime import UTC, datetime

_LATEST = 32_503_680_000
"""The year 3000, in Unix seconds: what is later is no time."""


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of one language; `day` is a format of the year, month and day, `months` their names."""

    contents: str
    reading: str
    unverified: str
    partial: str
    missing: str
    """Of a figure; with its path."""
    day: str
    months: tuple[str, ...] = ()

    def date(self, time: float | None) -> str:
        """Return a Unix time as a day of UTC; "" for none."""
        if time is None or not 0 <= time < _LATEST:
            return ""
        at = datetime.fromtimestamp(time, UTC)
        month = self.months[at.month - 1] if self.months else str(at.month)
        return self.day.format(year=at.year, month=month, day=at.day)

    def read_on(self, time: float) -> str:
        """Return that something was read at a Unix time; "" for none."""
        date = self.date(time)
        return self.reading.format(date) if date else ""


_ENGLISH = Wording(
    contents="Contents",
    reading="read on {}",
    unverified="What stands before this mark was not found in what the team read.",
    partial="The budget ran out: this report is partial.",
    missing="figure missing: {}",
    day="{day} {month} {year}",
    months=(
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ),
)
_CHINESE = Wording(
    contents="目录",
    reading="阅读于 {}",
    unverified="此标记之前的内容未能在团队阅读过的资料中找到。",
    partial="预算已用尽：本报告并不完整。",
    missing="图片缺失：{}",
    day="{year}年{month}月{day}日",
)


def wording_of(language: str) -> Wording:
    """Return the words for a document in `language`, such as `zh`: English where there are no others."""
    return _CHINESE if language == "zh" else _ENGLISH
