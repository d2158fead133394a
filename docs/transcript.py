"""Takes the README's transcript anew: runs the smoke session and puts its output between the two marks.

`python docs/transcript.py`, in the environment that `make smoke` made. The project's own path is shortened, and one
line stands for the dots.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- transcript -->\n", "<!-- /transcript -->"
DOTS = r"(^(gates/\S+ )?\.+ +\[ *\d+%\]\n)+"
COMMAND = ["python", "-m", "pytest", "gates/", "-m", "smoke"]


def smoke_output() -> str:
    """What a passed smoke session prints; a failed one is no transcript and raises CalledProcessError."""
    done = subprocess.run([sys.executable, *COMMAND[1:]], cwd=ROOT, capture_output=True, text=True, check=True)
    output = done.stdout.replace(f"{ROOT}/", "").replace(str(ROOT), ".").strip()
    return re.sub(DOTS, "[a line of dots for each file of gates]\n", output, flags=re.MULTILINE)


def with_transcript(readme: str, output: str) -> str:
    """The README with another transcript between its marks."""
    head, rest = readme.split(BEGIN)
    _, tail = rest.split(END)
    return f"{head}{BEGIN}\n```text\n$ {' '.join(COMMAND)}\n{output}\n```\n\n{END}{tail}"


if __name__ == "__main__":
    page = ROOT / "README.md"
    page.write_text(with_transcript(page.read_text(encoding="utf-8"), smoke_output()), encoding="utf-8")
