//go:build !linux

package main

import "log"

func main() {
	log.Fatal("bench/cluster is for Linux: it reads /proc, and cuts networks with namespaces")
}
