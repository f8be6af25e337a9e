"""The files of a workspace for a listing: one by one, or of many the folders."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileGroup:
    """A file, or a folder whose `path` ends with "/": the number of its files, and their bytes together."""

    path: str
    files: int
    size: int

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder with several files."""
        return self.path.endswith("/")


def group_files(files: Sequence[tuple[str, int]], most: int) -> list[FileGroup]:
    """Return each file (path, bytes), or if there are more than `most`, the files of each folder together.

    Folders come first. Of more than `most` folders, those in one folder are counted as that folder, the
    deepest first; only folders of the top level, and files outside of folders, can be more than `most`.
    """
    if len(files) <= most:
        return [FileGroup(path, 1, size) for path, size in files]
    folders: dict[str, list[tuple[str, int]]] = {}
    for file in files:
        folders.setdefault(file[0].rpartition("/")[0], []).append(file)
    single = folders.pop("", [])
    while len(folders) > most and any("/" in folder for folder in folders):
        deepest = max(folders, key=lambda one: one.count("/"))
        above = deepest.rpartition("/")[0]
        joined = [folder for folder in folders if folder.rpartition("/")[0] == above]
        files = [file for folder in joined for file in folders.pop(folder)]
        folders.setdefault(above, []).extend(files)
    groups = [
        FileGroup(f"{folder}/", len(files), sum(size for _, size in files))
        if len(files) > 1
        else FileGroup(files[0][0], 1, files[0][1])
        for folder, files in folders.items()
    ]
    return [*groups, *(FileGroup(path, 1, size) for path, size in single)]
