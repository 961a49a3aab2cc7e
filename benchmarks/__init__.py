"""What a guard costs, measured: `./benchmarks/run` prints it. Nothing here is asserted; tests never look at a clock."""
