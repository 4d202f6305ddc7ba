"""The extension: text in, JSON text out."""

class InputError(ValueError):
    source: str
    line: int
    column: int
    key: str
    problem: str

class Unsupported(NotImplementedError): ...

class RunSource:
    def __init__(self, name: str, is_path: bool, text: str) -> None: ...

def predict(run: RunSource, sets: list[str], engine: str, folders: list[str]) -> str: ...
def compare(runs: list[RunSource], sets: list[str], engine: str, folders: list[str]) -> str: ...
def version() -> str: ...
