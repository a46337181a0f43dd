package clients

import (
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/pawl-dev/pawl/pawltest"
)

// Writers that read, add one and retry when somebody was quicker lose no addition: a write
// based on an older version is refused (spec/http.md H123), and only then.
func TestRetryOnConflict(t *testing.T) {
	t.Parallel()
	const writers, additions = 8, 10
	ctx := soon(t)
	maps := typed(t, pawltest.New(t)).CoreV1().ConfigMaps("default")
	if _, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: named("sum")}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	add := func() error {
		sum, err := maps.Get(ctx, "sum", metav1.GetOptions{})
		if err != nil {
			return err
		}
		n, _ := strconv.Atoi(sum.Data["is"]) // absent is none
		sum.Data = map[string]string{"is": strconv.Itoa(n + 1)}
		_, err = maps.Update(ctx, sum, metav1.UpdateOptions{})
		return err
	}
	// More attempts than a lone controller needs: here all write at the same moment.
	patient := wait.Backoff{Steps: 1000, Duration: time.Millisecond, Jitter: 1}
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range additions {
				if err := retry.RetryOnConflict(patient, add); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	sum, err := maps.Get(ctx, "sum", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := sum.Data["is"], strconv.Itoa(writers*additions); got != want {
		t.Errorf("%d writers added %d each and the sum is %s, want %s", writers, additions, got, want)
	}
}
