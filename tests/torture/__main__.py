import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # `torture` and the tests' own helpers, as pytest finds them

from torture.campaign import main

if __name__ == "__main__":
    main()
