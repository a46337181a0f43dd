package controllers

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sail is a pod of a mill.
func sail(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: named(name), Spec: sails(name).Spec.Template.Spec}
}

// What is created below an object is not stored: a token is answered, a pod is bound to its
// node, another is evicted.
func TestCreateSubResource(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	_, c := world(t)

	account := &corev1.ServiceAccount{ObjectMeta: named("miller")}
	must(t, c.Create(ctx, account))
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"grain"}, ExpirationSeconds: ptr.To[int64](600)}}
	must(t, c.SubResource("token").Create(ctx, account, token))
	if token.Status.Token == "" || token.Status.ExpirationTimestamp.IsZero() {
		t.Errorf("the token is %+v", token.Status)
	}

	bound, evicted := sail("bound"), sail("evicted")
	must(t, c.Create(ctx, bound))
	must(t, c.Create(ctx, evicted))
	must(t, c.SubResource("binding").Create(ctx, bound, &corev1.Binding{Target: corev1.ObjectReference{Name: "node-1"}}))
	must(t, c.Get(ctx, client.ObjectKeyFromObject(bound), bound))
	if bound.Spec.NodeName != "node-1" {
		t.Errorf("the pod is bound to %q, want node-1", bound.Spec.NodeName)
	}
	must(t, c.SubResource("eviction").Create(ctx, evicted, &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}}))
	if err := c.Get(ctx, client.ObjectKeyFromObject(evicted), evicted); !apierrors.IsNotFound(err) {
		t.Errorf("get of the pod that was evicted: %v, want not found", err)
	}
}

// A strategic merge knows a deployment's containers by their names, and a name that is made up
// is told to its creator.
func TestBuiltInExtras(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	_, c := world(t)
	d := sails("")
	d.GenerateName = "sails-"
	d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = map[string]string{"is": "new"}, map[string]string{"is": "new"}
	must(t, c.Create(ctx, d))
	if len(d.Name) <= len("sails-") {
		t.Errorf("the name that was made up is %q", d.Name)
	}
	before := d.DeepCopy()
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "brake", Image: "brake"}, d.Spec.Template.Spec.Containers[0]}
	must(t, c.Patch(ctx, d, client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})))
	must(t, c.Patch(ctx, d, client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"sail","image":"sail:new"}]}}}}`))))
	var got appsv1.Deployment
	must(t, c.Get(ctx, client.ObjectKeyFromObject(d), &got))
	images := map[string]string{}
	for _, container := range got.Spec.Template.Spec.Containers {
		images[container.Name] = container.Image
	}
	if len(images) != 2 || images["brake"] != "brake" || images["sail"] != "sail:new" {
		t.Errorf("the containers' images are %v", images)
	}
}
