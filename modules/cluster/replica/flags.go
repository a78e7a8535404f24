package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/redact"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/modules/cluster/internode"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// Flags configure a run as a replica of a cluster.
type Flags struct {
	ClusterFlags
	name      string
	address   string // of the listener for other replicas
	advertise string // the address that other replicas connect to, if it is another one
	cert      string
	certKey   string
	ca        string
}

// Add adds the flags to a verb. Secrets in their values are added to secrets.
func (f *Flags) Add(cmd *cobra.Command, secrets *redact.Redactor) {
	f.ClusterFlags.Add(cmd, secrets)
	cmd.Flags().StringVar(&f.name, "replica", "", "the `name` of this replica in the cluster, for people (default: that of the machine)")
	cmd.Flags().StringVar(&f.address, "peer-addr", "", "the `address` at which other replicas reach this one, HOST:PORT (default: a free port, where NATS is reached from)")
	cmd.Flags().StringVar(&f.advertise, "peer-advertise", "", "the `address` that they are told instead, HOST:PORT")
	cmd.Flags().StringVar(&f.cert, "peer-cert", "", "the `file` with the certificate that other replicas are shown (PEM; default: one of the cluster key)")
	cmd.Flags().StringVar(&f.certKey, "peer-key", "", "the `file` with its key (PEM)")
	cmd.Flags().StringVar(&f.ca, "peer-ca", "", "the `file` with the authorities of the other replicas' certificates (PEM)")
}

// New returns the flags of a verb.
func New() module.Cluster { return &Flags{} }

// AddFlags adds the flags to a verb: with member those of a replica.
func (f *Flags) AddFlags(cmd *cobra.Command, member bool) {
	if member {
		f.Add(cmd, &cli.Secrets)
	} else {
		f.ClusterFlags.Add(cmd, &cli.Secrets)
	}
}

// Logins opens the logins that the replicas share. The caller must call end.
func (f *Flags) Logins(ctx context.Context, verb string) (logins *logins.Store, end func(), err error) {
	c, err := f.ClusterFlags.Open(ctx, verb)
	if err != nil {
		return nil, nil, err
	}
	if logins, err = c.Logins(ctx); err != nil {
		_ = c.Close()
		return nil, nil, err
	}
	return logins, func() { _ = c.Close() }, nil
}

// Name returns the name of the replica. Without a cluster it may be empty.
func (f *Flags) Name() string { return f.name }

// isMember reports whether the run is a replica, and sets its name if so.
func (f *Flags) isMember() (bool, error) {
	if f.Servers() != "" {
		if f.name == "" {
			name, err := os.Hostname()
			if err != nil {
				return false, hint.With(fmt.Errorf("the name of this machine is not known: %w", err), "name the replica with --replica")
			}
			f.name = name
		}
		return true, nil
	}
	if cmp.Or(f.name, f.address, f.advertise, f.cert, f.certKey, f.ca) != "" {
		return false, hint.With(errors.New("--replica and --peer-… are for a replica of a cluster, and none is named"), "--cluster nats://HOST:4222, or %s", clusterVariable)
	}
	return false, nil
}

// identity returns the identity that this replica uses with others: that of the --peer flags, or
// one derived from the cluster key.
func (f *Flags) identity(keys *seal.Keys) (*internode.Identity, error) {
	switch {
	case f.cert == "" && f.certKey == "" && f.ca == "":
		return internode.Keyed(keys)
	case f.cert == "" || f.certKey == "" || f.ca == "":
		return nil, hint.With(errors.New("--peer-cert, --peer-key and --peer-ca go together"), "give all three, or none")
	}
	id, err := internode.Files(f.cert, f.certKey, f.ca)
	if err != nil {
		return nil, fmt.Errorf("the certificate for other replicas: %w", err)
	}
	return id, nil
}

// listen opens the listener for other replicas, and returns the address to advertise.
func (f *Flags) listen() (ln net.Listener, advertised string, err error) {
	ln, err = net.Listen("tcp", cmp.Or(f.address, net.JoinHostPort(f.localAddress(), "0")))
	if err != nil {
		return nil, "", hint.With(fmt.Errorf("--peer-addr: %w", err), "it is HOST:PORT, with an address of this machine")
	}
	if f.advertise != "" {
		if _, _, err := net.SplitHostPort(f.advertise); err != nil {
			ln.Close()
			return nil, "", hint.With(fmt.Errorf("--peer-advertise: %w", err), "it is HOST:PORT")
		}
		return ln, f.advertise, nil
	}
	at := ln.Addr().(*net.TCPAddr)
	host := at.IP.String()
	if at.IP.IsUnspecified() {
		host = f.localAddress()
	}
	return ln, net.JoinHostPort(host, strconv.Itoa(at.Port)), nil
}

// localAddress returns the local address of connections to NATS, which other replicas can
// probably reach. A UDP dial determines it without sending anything.
func (f *Flags) localAddress() string {
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
