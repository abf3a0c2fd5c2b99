"""Several clients work while processes of the node are killed, stopped and starved at random: `python -m tests.chaos --rounds 50 --seed 1`."""
