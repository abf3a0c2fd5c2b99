// Ways to wait in Go, by name.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"sync"
	"time"
)

func main() {
	fmt.Println("up")
	signal.Notify(make(chan os.Signal, 1), os.Interrupt) // so that the runtime does not see its own deadlock
	switch os.Args[1] {
	case "mutex":
		var lock sync.Mutex
		lock.Lock()
		lock.Lock()
	case "loop":
		for {
		}
	case "sleep":
		time.Sleep(time.Minute)
	}
}
