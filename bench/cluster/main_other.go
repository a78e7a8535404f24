//go:build !linux

package main

import "log"

func main() {
	log.Fatal("bench/cluster is for Linux: it looks into /proc, and cuts networks with namespaces")
}
