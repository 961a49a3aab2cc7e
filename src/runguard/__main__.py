"""`python -m runguard`, the same as the command `runguard`."""

from runguard.cli.fast import main

main()
