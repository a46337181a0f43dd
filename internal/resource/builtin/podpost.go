package builtin

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/registry"
)

// bindings is the door through which a scheduler says on which node a pod is to run. What it
// may change, [bind] alone changes. The generation stays: the reference does not count this.
var bindings = rules[*corev1.Pod]{policy: pods.policy, defaults: pods.defaults, grace: pods.grace}

// podPosts are the doors of a pod that take something (rules B51, B52).
func podPosts() []Subresource {
	binding := define(Kind{Version: "v1", Kind: "Binding"}, rules[*corev1.Binding]{}, nil)
	eviction := define(Kind{Group: policyv1.GroupName, Version: "v1", Kind: "Eviction"}, rules[*policyv1.Eviction]{}, nil)
	return []Subresource{
		{Name: "binding", Verbs: []string{"create"}, Strategy: strategy[*corev1.Pod]{bindings}, Posted: &posted{binding, bindPod}},
		{Name: "eviction", Verbs: []string{"create"}, Strategy: strategy[*corev1.Pod]{pods}, Posted: &posted{eviction, evictPod}},
	}
}

// bindPod puts a pod on a node, once (rule B51).
func bindPod(ctx context.Context, store *registry.Store, at resource.Address, obj runtime.Object) (runtime.Object, error) {
	b, ok := obj.(*corev1.Binding)
	if !ok {
		return nil, fmt.Errorf("builtin: a %T is no Binding", obj)
	}
	if b.Name != at.Name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Binding object")
	}
	if errs := wrongTarget(b); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Binding"}, b.Name, errs)
	}
	_, err := store.Update(ctx, at.Namespace, at.Name, func(_ context.Context, current runtime.Object) (runtime.Object, error) {
		p, ok := current.(*corev1.Pod)
		if !ok {
			return nil, fmt.Errorf("builtin: a %T is no Pod", current)
		}
		if b.ResourceVersion != "" {
			p.ResourceVersion = b.ResourceVersion
		}
		return p, bind(p, b)
	}, registry.UpdateOptions{DryRun: at.DryRun, UID: b.UID, Patch: true, Owned: true})
	return nil, err
}

func wrongTarget(b *corev1.Binding) field.ErrorList {
	var errs field.ErrorList
	target := field.NewPath("target")
	if k := b.Target.Kind; k != "" && k != "Node" {
		errs = append(errs, field.NotSupported(target.Child("kind"), k, []string{"Node", "<empty>"}))
	}
	if b.Target.Name == "" {
		errs = append(errs, field.Required(target.Child("name"), ""))
	}
	return errs
}

// bind puts p on the node that b names, and takes over the labels and annotations that b
// brings.
func bind(p *corev1.Pod, b *corev1.Binding) error {
	refuse := func(format string, args ...any) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, p.Name, fmt.Errorf(format, args...))
	}
	switch {
	case p.DeletionTimestamp != nil:
		return refuse("pod %s is being deleted, cannot be assigned to a host", p.Name)
	case p.Spec.NodeName != "":
		return refuse("pod %s is already assigned to node %q", p.Name, p.Spec.NodeName)
	case len(p.Spec.SchedulingGates) > 0:
		return refuse("pod %s has non-empty .spec.schedulingGates", p.Name)
	}
	p.Spec.NodeName, p.Status.NominatedNodeName = b.Target.Name, ""
	p.Labels, p.Annotations = joined(p.Labels, b.Labels), joined(p.Annotations, b.Annotations)
	scheduled(p)
	return nil
}

// joined returns a with what b says on top.
func joined(a, b map[string]string) map[string]string {
	if len(b) == 0 {
		return a
	}
	all := maps.Clone(a)
	if all == nil {
		all = make(map[string]string, len(b))
	}
	maps.Copy(all, b)
	return all
}

// scheduled notes in the status of p that it has a node.
func scheduled(p *corev1.Pod) {
	yes := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now().Rfc3339Copy()}
	for i, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			p.Status.Conditions[i] = yes
			return
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, yes)
}

// evictPod deletes a pod. There are no disruption budgets that could forbid it (rule B52).
func evictPod(ctx context.Context, store *registry.Store, at resource.Address, obj runtime.Object) (runtime.Object, error) {
	e, ok := obj.(*policyv1.Eviction)
	if !ok {
		return nil, fmt.Errorf("builtin: a %T is no Eviction", obj)
	}
	if e.Name != at.Name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	o := e.DeleteOptions
	if o == nil {
		o = &metav1.DeleteOptions{}
	}
	if at.DryRun {
		o.DryRun = []string{metav1.DryRunAll}
	}
	_, err := store.Delete(ctx, at.Namespace, at.Name, o)
	return nil, err
}
