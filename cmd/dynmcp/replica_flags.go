package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/transports/internode"
)

// replicaFlags say how a run is one of several replicas.
type replicaFlags struct {
	clusterFlags
	name      string
	address   string // of the listener for other replicas
	advertise string // where they reach it
	cert      string
	certKey   string
	ca        string
}

func (f *replicaFlags) add(cmd *cobra.Command) {
	f.clusterFlags.add(cmd)
	cmd.Flags().StringVar(&f.name, "replica", "", "the `name` of this replica in the cluster, for people (default: that of the machine)")
	cmd.Flags().StringVar(&f.address, "peer-addr", "", "the `address` at which other replicas reach this one, HOST:PORT (default: a free port, where NATS is reached from)")
	cmd.Flags().StringVar(&f.advertise, "peer-advertise", "", "the `address` that they are told instead, HOST:PORT")
	cmd.Flags().StringVar(&f.cert, "peer-cert", "", "the `file` with the certificate that other replicas are shown (PEM; default: one of the cluster key)")
	cmd.Flags().StringVar(&f.certKey, "peer-key", "", "the `file` with its key (PEM)")
	cmd.Flags().StringVar(&f.ca, "peer-ca", "", "the `file` with the authorities of the other replicas' certificates (PEM)")
}

// isMember reports whether the run is to be a replica, whose name is set then.
func (f *replicaFlags) isMember() (bool, error) {
	f.resolve()
	if f.servers != "" {
		if f.name == "" {
			name, err := os.Hostname()
			if err != nil {
				return false, hinted(fmt.Errorf("the name of this machine is not known: %w", err), "name the replica with --replica")
			}
			f.name = name
		}
		return true, nil
	}
	if cmp.Or(f.name, f.address, f.advertise, f.cert, f.certKey, f.ca) != "" {
		return false, hinted(errors.New("--replica and --peer-… are for a replica of a cluster, and none is named"), "--cluster nats://HOST:4222, or %s", clusterVariable)
	}
	return false, nil
}

// identity returns what other replicas are shown.
func (f *replicaFlags) identity(keys *seal.Keys) (*internode.Identity, error) {
	switch {
	case f.cert == "" && f.certKey == "" && f.ca == "":
		return internode.Keyed(keys)
	case f.cert == "" || f.certKey == "" || f.ca == "":
		return nil, hinted(errors.New("--peer-cert, --peer-key and --peer-ca go together"), "give all three, or none")
	}
	id, err := internode.Files(f.cert, f.certKey, f.ca)
	if err != nil {
		return nil, fmt.Errorf("the certificate for other replicas: %w", err)
	}
	return id, nil
}

// listen opens the address for other replicas, and returns the one that they are told.
func (f *replicaFlags) listen() (ln net.Listener, told string, err error) {
	ln, err = net.Listen("tcp", cmp.Or(f.address, net.JoinHostPort(f.ourAddress(), "0")))
	if err != nil {
		return nil, "", hinted(fmt.Errorf("--peer-addr: %w", err), "it is HOST:PORT, with an address of this machine")
	}
	if f.advertise != "" {
		if _, _, err := net.SplitHostPort(f.advertise); err != nil {
			ln.Close()
			return nil, "", hinted(fmt.Errorf("--peer-advertise: %w", err), "it is HOST:PORT")
		}
		return ln, f.advertise, nil
	}
	at := ln.Addr().(*net.TCPAddr)
	host := at.IP.String()
	if at.IP.IsUnspecified() {
		host = f.ourAddress()
	}
	return ln, net.JoinHostPort(host, strconv.Itoa(at.Port)), nil
}

// ourAddress returns the address of this machine from which NATS is reached, where other
// replicas are likely to reach us. Nothing is sent to find out.
func (f *replicaFlags) ourAddress() string {
	for _, address := range f.addresses() {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" {
			continue
		}
		conn, err := net.Dial("udp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "4222")))
		if err != nil {
			continue
		}
		defer conn.Close()
		if at, ok := conn.LocalAddr().(*net.UDPAddr); ok {
			return at.IP.String()
		}
	}
	return "127.0.0.1"
}
