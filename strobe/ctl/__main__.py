from strobe.ctl import main

main()
