package server

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/internal/resource"
)

// post hands what was sent to the object that the path names (rules B51, B52). It may leave
// its name and namespace out, as the path has them.
func (c *call) post() error {
	obj, o, err := c.receiveHere()
	if err != nil {
		return err
	}
	at := resource.Address{Namespace: c.namespace(), Name: c.rt.name, DryRun: o.dryRun}
	answer, err := c.posted.Do(c.r.Context(), at, obj)
	if err != nil {
		return err
	}
	if answer != nil {
		return c.sendObject(http.StatusCreated, answer)
	}
	c.warnings.send(c.w.Header())
	c.s.respondStatus(c.w, c.look, metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated})
	return nil
}
