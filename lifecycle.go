package pawl

import (
	"context"
	"net"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/pawl-dev/pawl/internal/auth"
	"github.com/pawl-dev/pawl/internal/pki"
	"github.com/pawl-dev/pawl/internal/resource/builtin"
	"github.com/pawl-dev/pawl/registry"
)

func hostOf(listen string) (string, error) {
	host, _, err := net.SplitHostPort(listen)
	return host, err
}

// adminUser is who holds the administrator's token: the person of the administrator's
// certificate.
func adminUser() auth.User {
	return &user.DefaultInfo{Name: pki.AdminName, Groups: []string{user.SystemPrivilegedGroup}}
}

func (p *parts) guards(builtin.Kind) []registry.Guard { return nil }
func (p *parts) hooks(builtin.Kind) []registry.Hook   { return nil }
func (p *parts) customGuards() []registry.Guard       { return nil }
func (p *parts) bootstrap(context.Context) error      { return nil }
func (p *parts) control(context.Context)              {}
