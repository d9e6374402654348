"""The files of ``configs/``, which travel with the package: run configs and concerns by name."""

from pathlib import Path


def packaged_folder(kind: str) -> Path:
    """Return a folder under ``configs/``, of the installed package or of the repository: experiments, concerns, ..."""
    package = Path(__file__).parents[1]
    root = package / "configs" if (package / "configs").is_dir() else package.parent / "configs"
    return root / kind


def packaged_names(kind: str) -> list[str]:
    """Return the names of the files in such a folder."""
    return sorted(path.stem for path in packaged_folder(kind).glob("*.yaml"))


def packaged_file(kind: str, name: str) -> Path:
    """Return the file of a name."""
    return packaged_folder(kind) / f"{name}.yaml"
