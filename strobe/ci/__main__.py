from strobe.ci import main

main()
