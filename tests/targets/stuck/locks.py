"""Ways to wait and to compute in Python, by name."""

import queue
import subprocess
import sys
import threading
import time

first, second = threading.Lock(), threading.Lock()


def take(one: threading.Lock, other: threading.Lock) -> None:
    with one:
        time.sleep(0.05)
        with other:
            pass


def main(wanted: str) -> None:
    print("up", flush=True)
    if wanted == "locks":
        threads = [threading.Thread(target=take, args=pair) for pair in ((first, second), (second, first))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    elif wanted == "queue":
        queue.Queue().get()
    elif wanted == "event":
        threading.Event().wait()
    elif wanted == "loop":
        while True:
            pass
    elif wanted == "sleep":
        time.sleep(60)
    elif wanted == "stdin":
        sys.stdin.read()
    elif wanted == "child":
        subprocess.run(["sleep", "60"], check=False)
    elif wanted == "compute":
        total = 0
        for number in range(10**11):
            total += number * number % 7
    elif wanted == "poll":
        while not queue.Queue().qsize():
            time.sleep(0.02)


main(sys.argv[1])
