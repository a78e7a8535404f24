//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
)

// The networks between nodes, by their purpose. Hosts, the balancer, HTTP upstreams and the identity
// provider are on toHosts.
const (
	toNATS = iota
	toReplicas
	toHosts
)

var networks = []string{"nats", "peers", "hosts"}

// A network connects nodes. With namespaces each node has a network namespace, connected by a bridge
// for each of the networks, which can be cut separately; they end with this process, which is in a
// namespace too. Without namespaces nodes have separate loopback addresses, so that their ports do not
// collide, and nothing can be cut.
type network struct {
	spaces bool
	net    [2]int // 127.net.net.x
}

func newNetwork(spaces bool) (*network, error) {
	n := &network{spaces: spaces, net: [2]int{1 + rand.IntN(250), rand.IntN(250)}}
	if !spaces {
		return n, nil
	}
	for i, name := range networks {
		if err := ip("link add %s type bridge", name); err != nil {
			return nil, err
		}
		if err := ip("link set %s up", name); err != nil {
			return nil, err
		}
		if i == toHosts {
			if err := ip("addr add %s/24 dev %s", n.own(), name); err != nil {
				return nil, err
			}
		}
	}
	// Packets that arrive on another interface than the answer would take are dropped, so that a cut
	// works in both directions.
	return n, os.WriteFile("/proc/sys/net/ipv4/conf/all/rp_filter", []byte("1"), 0o600)
}

// own returns the address at which nodes reach this process.
func (n *network) own() string { return n.at(toHosts, 254) }

// at returns the address of the node with a number, on a network.
func (n *network) at(net, node int) string {
	if n.spaces {
		return fmt.Sprintf("10.77.%d.%d", net, node)
	}
	return fmt.Sprintf("127.%d.%d.%d", n.net[0], n.net[1], node)
}

// add creates the namespace of a node, connected to nets.
func (n *network) add(name string, node int, nets ...int) error {
	if !n.spaces {
		return nil
	}
	steps := []string{"netns add " + name, "-n " + name + " link set lo up"}
	for _, net := range nets {
		link := link(name, net)
		steps = append(steps,
			fmt.Sprintf("link add %s type veth peer name %s netns %s", link, networks[net], name),
			fmt.Sprintf("link set %s master %s up", link, networks[net]),
			fmt.Sprintf("-n %s addr add %s/24 dev %s", name, n.at(net, node), networks[net]),
			fmt.Sprintf("-n %s link set %s up", name, networks[net]))
	}
	for _, step := range steps {
		if err := ip("%s", step); err != nil {
			return err
		}
	}
	return nil
}

// remove removes the namespace of a node that has ended.
func (n *network) remove(name string) error {
	if !n.spaces {
		return nil
	}
	return ip("netns del %s", name)
}

// close removes the bridges.
func (n *network) close() {
	if !n.spaces {
		return
	}
	for _, name := range networks {
		_ = ip("link del %s", name) // otherwise it ends with our namespace
	}
}

// link returns the name of a node's link to a bridge.
func link(name string, net int) string { return name + "-" + networks[net] }

// cut disconnects a node from networks, silently. heal reverses it.
func (n *network) cut(name string, nets ...int) error {
	for _, net := range nets {
		if err := ip("link set %s nomaster", link(name, net)); err != nil {
			return err
		}
	}
	return nil
}

func (n *network) heal(name string, nets ...int) error {
	for _, net := range nets {
		if err := ip("link set %s master %s", link(name, net), networks[net]); err != nil {
			return err
		}
	}
	return nil
}

// enter returns the command prefix that runs a command in the namespace of a node.
func (n *network) enter(name string) []string {
	if !n.spaces {
		return nil
	}
	return []string{"nsenter", "--net=/run/netns/" + name, "--"}
}

func ip(format string, args ...any) error {
	line := fmt.Sprintf(format, args...)
	if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", line, err, out)
	}
	return nil
}

// namespaces returns the command prefix that runs a command in a namespace in which networks can be
// created and end with it, nil if that is not permitted.
func namespaces() []string {
	for _, rights := range [][]string{{}, {"--user", "--map-root-user"}} {
		enter := append(append([]string{"unshare"}, rights...), "--net", "--mount", "--propagation", "private", "sh", "-c", `mount -t tmpfs none /run && ip link set lo up && exec "$@"`, "sh")
		try := append(enter[1:], "sh", "-c", "ip netns add try && ip -n try link set lo up && nsenter --net=/run/netns/try true && ip link add try type bridge")
		if exec.Command(enter[0], try...).Run() == nil {
			return enter
		}
	}
	return nil
}
