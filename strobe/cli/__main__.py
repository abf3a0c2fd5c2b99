from strobe.cli import main

main()
