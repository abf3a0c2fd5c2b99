from actors.stuck_detector.actor import StuckDetector
from strobe.runtime import main

main(StuckDetector)
