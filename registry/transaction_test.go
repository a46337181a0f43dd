package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
	"github.com/pawl-dev/pawl/storage"
)

// setting is a desire that sets a member of the data of a config map.
func setting(pair string) Desire {
	return func(_ context.Context, current runtime.Object) (runtime.Object, error) {
		key, value, _ := strings.Cut(pair, "=")
		cm := current.(*configMap)
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		cm.Data[key] = value
		return cm, nil
	}
}

// Over {one: is=red, two: is=blue}. A transaction that is refused leaves nothing behind, says which of
// its members was refused, and tells each hook that began how it ended, once.
func TestATransactionNamesTheMemberThatIsRefused(t *testing.T) {
	fail := errors.New("sorry")
	for _, c := range []struct {
		name    string
		members func(*stand) []Member
		err     string
		hooks   string
		then    string
	}{
		{"nothing", func(*stand) []Member { return nil }, "", "", "one=red two=blue"},
		{"a create, an update, a delete and a check", func(s *stand) []Member {
			return []Member{
				s.Creates("ns", thing("new", "is=green"), CreateOptions{}), s.Updates("ns", "one", setting("is=gold"), UpdateOptions{}),
				s.Deletes("ns", "two", nil), s.Checks("ns", "none", func(runtime.Object) error { return nil }),
			}
		}, "", "begin 1: create, begin 2: update, begin 3: delete, end 1: written new, end 2: written one, end 3: removed two", "new=green one=gold"},
		{"an update that changes nothing beside one that does", func(s *stand) []Member {
			return []Member{s.Updates("ns", "one", setting("is=red"), UpdateOptions{}), s.Updates("ns", "two", setting("is=gold"), UpdateOptions{})}
		}, "", "begin 1: update, begin 2: update, end 1: unchanged, end 2: written two", "one=red two=gold"},
		{"a create of what exists", func(s *stand) []Member {
			return []Member{s.Updates("ns", "two", setting("is=gold"), UpdateOptions{}), s.Creates("ns", thing("one"), CreateOptions{})}
		}, `member 1 of the transaction, create configmaps "ns/one": configmaps "one" already exists`,
			"begin 1: update, begin 2: create, end 1: refused, end 2: refused", "one=red two=blue"},
		{"an update of what does not exist", func(s *stand) []Member {
			return []Member{s.Updates("ns", "none", setting("is=gold"), UpdateOptions{})}
		}, `member 0 of the transaction, update configmaps "ns/none": configmaps "none" not found`, "", "one=red two=blue"},
		{"an update that may create", func(s *stand) []Member {
			return []Member{s.Updates("ns", "none", Exactly(thing("none", "is=gold")), UpdateOptions{Create: true}), s.Deletes("ns", "one", nil)}
		}, "", "begin 1: create, begin 2: delete, end 1: written none, end 2: removed one", "none=gold two=blue"},
		{"an update that fails", func(s *stand) []Member {
			return []Member{s.Deletes("ns", "two", nil), s.Updates("ns", "one", func(context.Context, runtime.Object) (runtime.Object, error) { return nil, fail }, UpdateOptions{})}
		}, `member 1 of the transaction, update configmaps "ns/one": sorry`, "begin 1: delete, end 1: refused", "one=red two=blue"},
		{"a delete with a precondition that does not hold", func(s *stand) []Member {
			uid := "other"
			return []Member{s.Deletes("ns", "one", metav1.NewPreconditionDeleteOptions(uid))}
		}, `member 0 of the transaction, delete configmaps "ns/one": Operation cannot be fulfilled on ConfigMap "one": the UID in the precondition (other) does not match the UID in record (uid-1). The object might have been deleted and then recreated`, "", "one=red two=blue"},
		{"a check that fails", func(s *stand) []Member {
			return []Member{s.Deletes("ns", "two", nil), s.Checks("ns", "one", func(o runtime.Object) error {
				return errors.New("it is " + o.(*configMap).Data["is"])
			})}
		}, `member 1 of the transaction, check configmaps "ns/one": it is red`, "begin 1: delete, end 1: refused", "one=red two=blue"},
		{"a strategy that finds something", func(s *stand) []Member {
			s.strategy.findings = field.ErrorList{field.Invalid(field.NewPath("data"), "x", "is odd")}
			return []Member{s.Updates("ns", "one", setting("is=gold"), UpdateOptions{})}
		}, `member 0 of the transaction, update configmaps "ns/one": ConfigMap "one" is invalid: data: Invalid value: "x": is odd`,
			"begin 1: update, end 1: refused", "one=red two=blue"},
		{"metadata that is not lawful", func(s *stand) []Member {
			return []Member{s.Creates("ns", thing("No"), CreateOptions{})}
		}, `member 0 of the transaction, create configmaps "ns/No": ConfigMap "No" is invalid: metadata.name: Invalid value: "No": a lowercase RFC 1123 subdomain must consist…`,
			"begin 1: create, end 1: refused", "one=red two=blue"},
		{"no name", func(s *stand) []Member { return []Member{s.Updates("ns", "", setting("a=b"), UpdateOptions{})} },
			`member 0 of the transaction, update configmaps "ns/": Name parameter required.`, "", "one=red two=blue"},
		{"no namespace", func(s *stand) []Member { return []Member{s.Creates("", thing("x"), CreateOptions{})} },
			`member 0 of the transaction, create configmaps "x": Internal error occurred: no namespace information found in request context`, "", "one=red two=blue"},
		{"one object twice", func(s *stand) []Member {
			return []Member{s.Updates("ns", "one", setting("is=gold"), UpdateOptions{}), s.Deletes("ns", "two", nil), s.Deletes("ns", "one", nil)}
		}, `member 2 of the transaction, delete configmaps "ns/one": it is of the same object as member 0: a transaction says once what becomes of an object`, "", "one=red two=blue"},
		{"one object by two stores", func(s *stand) []Member {
			return []Member{s.Updates("ns", "one", setting("is=gold"), UpdateOptions{}), s.statusOf.Updates("ns", "one", setting("is=gold"), UpdateOptions{})}
		}, `member 1 of the transaction, update configmaps "ns/one": it is of the same object as member 0: a transaction says once what becomes of an object`, "", "one=red two=blue"},
		{"an empty member", func(s *stand) []Member { return []Member{s.Deletes("ns", "one", nil), {}} },
			`member 1 of the transaction: it is empty: members are made by stores and collections, such as by Updates`, "", "one=red two=blue"},
		{"nothing but an empty member", func(*stand) []Member { return []Member{{}} },
			`member 0 of the transaction: it is empty: members are made by stores and collections, such as by Updates`, "", "one=red two=blue"},
		{"two engines", func(s *stand) []Member {
			other := newStand(s.T, namespaced)
			return []Member{s.Deletes("ns", "one", nil), other.Deletes("ns", "two", nil)}
		}, `member 1 of the transaction, delete configmaps "ns/two": it is of another engine than the first member: a transaction is of one`, "", "one=red two=blue"},
		{"a member that is a dry run", func(s *stand) []Member {
			return []Member{s.Deletes("ns", "one", nil), s.Creates("ns", thing("x"), CreateOptions{DryRun: true})}
		}, `member 1 of the transaction, create configmaps "ns/x": it is a dry run and the transaction is not: ask for a dry run of the transaction`, "", "one=red two=blue"},
		{"what is only for objects that cannot be read", func(s *stand) []Member {
			yes := true
			return []Member{s.Deletes("ns", "one", &metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: &yes})}
		}, `member 0 of the transaction, delete configmaps "ns/one": ignoreStoreReadErrorWithClusterBreakingPotential is not for transactions: delete the object alone`, "", "one=red two=blue"},
		{"unchanged since no version", func(s *stand) []Member { return []Member{s.Unchanged("ns", "one", "")} },
			`member 0 of the transaction, check configmaps "ns/one": a resourceVersion is needed to tell whether the object is unchanged, and "" is none`, "", "one=red two=blue"},
		{"unchanged, but not there", func(s *stand) []Member { return []Member{s.Unchanged("ns", "none", "7")} },
			`member 0 of the transaction, check configmaps "ns/none": configmaps "none" not found`, "", "one=red two=blue"},
		{"nothing but a check that holds", func(s *stand) []Member { return []Member{s.Unchanged("ns", "one", s.stored("one").ResourceVersion)} },
			"", "", "one=red two=blue"},
	} {
		for _, dry := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dry run %v", c.name, dry), func(t *testing.T) {
				s := newStand(t, namespaced)
				s.made(thing("one", "is=red"))
				s.made(thing("two", "is=blue"))
				members := c.members(s)
				before := s.revision()
				done, err := Transaction{Members: members, DryRun: dry}.Commit(t.Context())
				want, then := c.err, c.then
				if dry {
					then = "one=red two=blue"
					if strings.Contains(want, "it is a dry run") {
						want = ""
					}
				}
				if !says(err, want) {
					t.Errorf("%v\nwant %s", err, want)
				}
				if got := s.all(); got != then {
					t.Errorf("now %s, want %s", got, then)
				}
				if got := s.hooked(); got != c.hooks && c.name != "a member that is a dry run" {
					t.Errorf("hooks were told\n     %s\nwant %s", got, c.hooks)
				}
				if err != nil {
					return
				}
				wrote := then != "one=red two=blue"
				if wrote && (done.Revision != before+1 || s.revision() != before+1) || !wrote && (done.Revision != kv.Absent || s.revision() != before) {
					t.Errorf("at %d, of %d, was at %d", done.Revision, s.revision(), before)
				}
			})
		}
	}
}

// says reports whether an error has that text, or begins so.
func says(err error, text string) bool {
	if err == nil || text == "" {
		return err == nil && text == ""
	}
	begin, open := strings.CutSuffix(text, "…")
	return err.Error() == text || open && strings.HasPrefix(err.Error(), begin)
}

// all is what there is, as name=is.
func (s *stand) all() string {
	s.Helper()
	page, err := s.List(s.Context(), ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	var all []string
	for _, v := range page.Items {
		all = append(all, v.Name()+"="+read(s, v).Data["is"])
	}
	return strings.Join(all, " ")
}

func TestTheErrorOfAMemberIsWhatItWouldBeAlone(t *testing.T) {
	s := newStand(t, namespaced)
	old := s.made(thing("one", "is=red"))
	ctx := storage.WithAuthor(t.Context(), kv.Author{User: "bob", Manager: "switch"})
	must(s.Update(ctx, "ns", "one", setting("is=blue"), UpdateOptions{}))
	old.Data["is"] = "gold"
	for _, c := range []struct {
		name      string
		member    Member
		contended bool
	}{
		{"an update that names an older version", s.Updates("ns", "one", Exactly(old), UpdateOptions{}), true},
		{"a delete that does", s.Deletes("ns", "one", metav1.NewRVDeletionPrecondition(old.ResourceVersion)), true},
		{"a check that does", s.Unchanged("ns", "one", old.ResourceVersion), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Transact(ctx, s.Creates("ns", thing("new"), CreateOptions{}), c.member)
			var refused *TransactionError
			var conflict *ConflictError
			if !errors.As(err, &refused) || refused.Index != 1 || refused.Name != "one" || !errors.As(err, &conflict) || !apierrors.IsConflict(err) {
				t.Fatal(err)
			}
			why := must(conflict.Explain(t.Context()))
			if len(why.Fields) != 1 || why.Fields[0].Path != ".data.is" || why.Fields[0].Manager != "switch" || why.Fields[0].Contended != c.contended {
				t.Errorf("explained by %v", why)
			}
		})
	}
}

func TestNamesOfATransactionAreGenerated(t *testing.T) {
	s := newStand(t, namespaced)
	s.made(thing("a-1", "is=red"))
	base := func() *configMap { return with(thing("", "is=new"), func(cm *configMap) { cm.GenerateName = "a-" }) }
	s.suffixes = []string{"1", "2", "3", "4"}
	done, err := Transact(t.Context(), s.Creates("ns", base(), CreateOptions{}), s.Creates("ns", base(), CreateOptions{}))
	if err != nil || s.all() != "a-1=red a-3=new a-4=new" || done.Members[0].Version.Name() != "a-3" || !done.Members[1].Created {
		t.Errorf("%v, %v: now %s", done, err, s.all())
	}
	s.suffixes = strings.Split(strings.Repeat("1 5 ", nameTriesMax), " ")
	_, err = Transact(t.Context(), s.Creates("ns", base(), CreateOptions{}), s.Creates("ns", base(), CreateOptions{}))
	if want := `member 0 of the transaction, create configmaps "ns/": configmaps "a-1" already exists, the server was not able to generate a unique name for the object`; !says(err, want) {
		t.Error(err)
	}
}

func TestATransactionThatLosesARaceIsJudgedAgain(t *testing.T) {
	s := newStand(t, namespaced)
	s.made(thing("one", "is=red"))
	s.made(thing("two", "is=blue"))
	races := 2
	done, err := Transact(t.Context(),
		s.Updates("ns", "one", setting("is=gold"), UpdateOptions{}),
		s.Updates("ns", "two", func(ctx context.Context, current runtime.Object) (runtime.Object, error) {
			if races--; races >= 0 {
				s.changed("two", func(cm *configMap) { cm.Data["races"] = fmt.Sprint(races) })
			}
			return setting("is=green")(ctx, current)
		}, UpdateOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, done.Members[1].Version).Data; got["is"] != "green" || got["races"] != "0" {
		t.Errorf("%v", got)
	}
	want := "begin 1: update, begin 2: update, end 1: refused, begin 3: update, end 2: refused, begin 4: update, " +
		"end 3: refused, begin 5: update, end 4: refused, begin 6: update, end 5: written one, end 6: written two"
	if got := s.hooked(); got != want {
		t.Errorf("hooks were told\n     %s\nwant %s", got, want)
	}
}

func TestATransactionThatGivesUpSaysWhatItLostTo(t *testing.T) {
	for _, c := range []struct {
		name     string
		attempts int
		stop     int
	}{{"its attempts are used up", 3, 100}, {"the context ends", 100, 2}} {
		t.Run(c.name, func(t *testing.T) {
			s := newStand(t, namespaced)
			s.made(thing("one", "is=red"))
			s.made(thing("two", "is=blue"))
			ctx, cancel := context.WithCancel(t.Context())
			tries := 0
			_, err := Transact(ctx,
				s.Updates("ns", "one", setting("is=gold"), UpdateOptions{Attempts: c.attempts}),
				s.Updates("ns", "two", func(ctx context.Context, current runtime.Object) (runtime.Object, error) {
					s.changed("two", func(cm *configMap) { cm.Data["is"] += "!" })
					if tries++; tries == c.stop {
						cancel()
					}
					return setting("is=green")(ctx, current)
				}, UpdateOptions{Attempts: c.attempts}))
			var lost *LostError
			var refused *TransactionError
			if !errors.As(err, &refused) || refused.Index != 1 || !errors.As(err, &lost) || lost.Attempts != min(c.attempts, c.stop) {
				t.Fatal(err)
			}
			if why := must(lost.Conflict.Explain(t.Context())); len(why.Fields) != 1 || !why.Fields[0].Contended {
				t.Errorf("explained by %v", why)
			}
		})
	}
}

func TestHooksOfATransactionOfWhichNobodyKnowsAreToldSo(t *testing.T) {
	s := newStand(t, namespaced)
	s.made(thing("one", "is=red"))
	s.engine.fail = &kv.Error{Op: "commit", Kind: kv.ErrUnknown}
	_, err := Transact(t.Context(), s.Updates("ns", "one", setting("is=gold"), UpdateOptions{}), s.Creates("ns", thing("new"), CreateOptions{}))
	told(t, err, "504 Timeout: Timeout: whether the write was stored is not known: read the object again before you repeat it")
	if got, want := s.hooked(), "begin 1: update, begin 2: create, end 1: uncertain, end 2: uncertain"; got != want {
		t.Errorf("hooks were told %s", got)
	}
	s.engine.fail = &kv.Error{Op: "commit", Kind: kv.ErrReadOnly}
	_, err = Transact(t.Context(), s.Updates("ns", "one", setting("is=gold"), UpdateOptions{}))
	told(t, err, "500 ServerTimeout: The transact operation against configmaps could not be completed at this time, please try again. kv: commit: the store takes no more writes")
}

func TestATransactionThatIsTooLargeSaysSo(t *testing.T) {
	s := newStand(t, namespaced)
	var members []Member
	for i := range kv.MaxTxnOps/2 + 1 {
		members = append(members, s.Creates("ns", thing(fmt.Sprint("n", i)), CreateOptions{}))
	}
	_, err := Transact(t.Context(), members...)
	told(t, err, "413 RequestEntityTooLarge: Request entity too large: the transaction comes to 4098 conditions and changes, and at most 4096 are allowed: make several of it")
	if s.all() != "" {
		t.Error("something was written")
	}
	if _, err := Transact(t.Context(), members[1:]...); err != nil {
		t.Error(err)
	}
}

// A guard that wants the namespace finds one that is created before what is in it.
func TestWhatIsCreatedTogetherIsThereForThoseBehindIt(t *testing.T) {
	engine := memory(t)
	rooms := Of[lamp](engine, nil, CollectionOptions[lamp]{Plural: "rooms"})
	inRoom := func(_ context.Context, view *storage.View, namespace, _ string) error {
		if view.Get(rooms.Store().Table().Key("", namespace)) == nil {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "rooms"}, namespace)
		}
		return nil
	}
	lamps := Of(engine, DefaultFor[lamp]{Policies: Policy{Namespaced: true}}, CollectionOptions[lamp]{Config: Config{Guards: []Guard{inRoom}}})
	_, err := Transact(t.Context(), lamps.In("attic").Creates(newLamp("desk", "red")), rooms.Creates(newLamp("attic", "dark")))
	if want := `member 0 of the transaction, create lamps "attic/desk": rooms "attic" not found`; !says(err, want) {
		t.Error(err)
	}
	done, err := Transact(t.Context(), rooms.Creates(newLamp("attic", "dark")), lamps.In("attic").Creates(newLamp("desk", "red")))
	if err != nil || must(lamps.Transacted(done, 1)).Color != "red" {
		t.Error(err)
	}
}

type hasty struct{ Default }

func (hasty) Grace(runtime.Object, *int64) (int64, bool) { return 0, true }

// What is told that it has no time left, and then goes, goes at once in a transaction.
func TestDeletesOfATransaction(t *testing.T) {
	s := newStand(t, namespaced, func(c *Config) { c.Strategy = hasty{Default{namespaced}} })
	s.made(thing("one", "is=red"))
	s.made(thing("two", "is=blue"))
	s.made(with(thing("held", "is=green"), func(cm *configMap) { cm.Finalizers = []string{"x.io/y"} }))
	before := s.revision()
	done, err := Transact(t.Context(), s.Deletes("ns", "one", nil), s.Deletes("ns", "held", nil))
	if err != nil || !done.Members[0].Removed || done.Members[1].Removed || s.all() != "held=green two=blue" || s.revision() != before+1 {
		t.Errorf("%v, %v: now %s", done, err, s.all())
	}
	if got, want := s.hooked(), "begin 1: delete, begin 2: delete, end 1: removed one, end 2: written held"; got != want {
		t.Errorf("hooks were told %s", got)
	}
	must(s.Delete(t.Context(), "ns", "two", nil))
	if s.revision() != before+3 {
		t.Errorf("alone it took %d commits, want 2", s.revision()-before-1)
	}
}

// Who removed an object in a transaction is told as who deleted it, whatever else the transaction did (rule S50).
func TestADeleteOfATransactionIsTold(t *testing.T) {
	s := newStand(t, namespaced, func(c *Config) { c.Strategy = hasty{Default{namespaced}} })
	old := s.made(thing("one", "is=red"))
	if _, err := Transact(as(t.Context(), "mover"), s.Deletes("ns", "one", nil), s.Creates("ns", thing("two"), CreateOptions{})); err != nil {
		t.Fatal(err)
	}
	s.made(thing("one", "is=blue"))
	stale := thing("one", "is=gold")
	stale.ResourceVersion = old.ResourceVersion
	_, err := s.Update(t.Context(), "ns", "one", Exactly(stale), UpdateOptions{})
	var conflict *ConflictError
	if !errors.As(err, &conflict) {
		t.Fatal(err)
	}
	x, err := conflict.Explain(t.Context())
	if err != nil || x.Deleted.Operation != "Delete" || x.Deleted.Manager != "mover" || x.Created.Operation != "Update" {
		t.Errorf("it is told %+v, %v", x, err)
	}
}

func TestMembersOfACollection(t *testing.T) {
	ctx := t.Context()
	c := Of[lamp](memory(t), nil)
	one, two := must(c.Create(ctx, newLamp("one", "red"))), must(c.Create(ctx, newLamp("two", "blue")))
	must(c.Create(ctx, newLamp("three", "white")))
	two.Color = "gold"
	uses := 0
	done, err := Transact(ctx,
		c.Unchanged(one),
		c.Checks("none", func(l *lamp) error {
			if l != nil {
				return errors.New("there is one")
			}
			uses = 7
			return nil
		}),
		c.Replaces(two),
		c.Updates("four", func(l *lamp) error { l.Color, l.Uses = "green", uses; return nil }, UpdateOptions{Create: true}),
		c.Deletes("three"))
	if err != nil {
		t.Fatal(err)
	}
	page := must(c.List(ctx))
	var now []string
	for _, l := range page.Items {
		now = append(now, fmt.Sprint(l.Name, " ", l.Color, " ", l.Uses))
	}
	if want := "[four green 7 one red 0 two gold 0]"; fmt.Sprint(now) != want {
		t.Errorf("now %v, want %v", now, want)
	}
	for i, want := range []string{"red", "", "gold", "green", "white"} {
		got := must(c.Transacted(done, i))
		if got == nil && want != "" || got != nil && got.Color != want {
			t.Errorf("member %d left %v, want %s", i, got, want)
		}
	}
	_, err = Transact(ctx, c.Checks("one", func(l *lamp) error { return errors.New("it is " + l.Color) }))
	if want := `member 0 of the transaction, check lamps "one": it is red`; !says(err, want) {
		t.Error(err)
	}
}

// An account has a balance; an entry says what came to an account.
type account struct {
	metav1.ObjectMeta `json:"metadata"`
	Balance           int    `json:"balance"`
	Of                string `json:"of,omitempty"`
}

type solvent struct{ DefaultFor[account] }

func (solvent) Validate(_ context.Context, a, _ *account) field.ErrorList {
	if a.Of == "" && a.Balance < 0 {
		return field.ErrorList{field.Invalid(field.NewPath("balance"), a.Balance, "there is no credit")}
	}
	return nil
}

type bank struct{ accounts, entries *Collection[account] }

func newBank(engine kv.Engine) bank {
	return bank{Of(engine, solvent{}), Of(engine, solvent{}, CollectionOptions[account]{Plural: "entries"})}
}

const (
	accountsOfTest = 4
	balanceOfTest  = 100
)

func (b bank) open(t *testing.T) {
	for i := range accountsOfTest {
		must(b.accounts.Create(t.Context(), &account{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("a", i)}, Balance: balanceOfTest}))
	}
}

// transfer moves an amount, and writes two entries about it.
func (b bank) transfer(ctx context.Context, from, to string, amount int) error {
	by := func(n int) func(*account) error { return func(a *account) error { a.Balance += n; return nil } }
	entry := func(of string, n int) Member {
		return b.entries.Creates(&account{ObjectMeta: metav1.ObjectMeta{GenerateName: "e-"}, Of: of, Balance: n})
	}
	_, err := Transact(ctx, b.accounts.Updates(from, by(-amount)), b.accounts.Updates(to, by(amount)), entry(from, -amount), entry(to, amount))
	return err
}

// check sees that nothing was lost or made, in one state of the store.
func (b bank) check(t *testing.T, at storage.From) {
	t.Helper()
	list := func(c *Collection[account]) []*account { return must(c.List(t.Context(), ListOptions{From: at})).Items }
	sum, balances := 0, map[string]int{}
	for _, a := range list(b.accounts) {
		balances[a.Name] = a.Balance - balanceOfTest
		sum += a.Balance
	}
	if sum != accountsOfTest*balanceOfTest {
		t.Errorf("there is %d in all, want %d", sum, accountsOfTest*balanceOfTest)
	}
	for _, e := range list(b.entries) {
		balances[e.Of] -= e.Balance
	}
	for of, left := range balances {
		if left != 0 {
			t.Errorf("the balance of %s differs by %d from its entries", of, left)
		}
	}
}

// churn makes transfers, side by side, as many as each worker is to make. Those that the strategy refuses are
// as good as others.
func (b bank) churn(t *testing.T, seed uint64, each int) {
	var workers sync.WaitGroup
	for w := range 4 {
		r := rand.New(rand.NewPCG(seed, uint64(w)))
		workers.Go(func() {
			for range each {
				from := r.IntN(accountsOfTest)
				to := (from + 1 + r.IntN(accountsOfTest-1)) % accountsOfTest
				err := b.transfer(t.Context(), fmt.Sprint("a", from), fmt.Sprint("a", to), r.IntN(60))
				if err != nil && !apierrors.IsInvalid(err) {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
		})
	}
	workers.Wait()
}

func TestTransfersChangeNoSum(t *testing.T) {
	engine := memory(t)
	b := newBank(engine)
	b.open(t)
	oldest := must(b.accounts.List(t.Context())).Revision
	b.churn(t, 1, 50)
	_, newest := engine.Revisions()
	if newest < oldest+50 {
		t.Errorf("only %d transfers were made", newest-oldest)
	}
	for rev := oldest; rev <= newest; rev++ {
		b.check(t, storage.Exactly{Revision: rev})
	}
}

// A copy of the folder that is made while transfers go on is what a process that is killed leaves behind.
func TestTransfersAreWholeInWhatACrashLeaves(t *testing.T) {
	dir := t.TempDir()
	engine, err := local.Open(t.Context(), local.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	b := newBank(engine)
	b.open(t)
	const seed = 2
	var left []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 6 {
			b.churn(t, seed, 4)
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		to := filepath.Join(t.TempDir(), "left")
		if err := os.CopyFS(to, appended{os.DirFS(dir)}); err != nil {
			t.Fatal(err)
		}
		left = append(left, to)
	}
	entries := map[int]bool{}
	const looks = 8 // at some of the copies, from the first to the last
	for i := range looks {
		dir := left[i*(len(left)-1)/(looks-1)]
		again, err := local.Open(t.Context(), local.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		newBank(again).check(t, nil)
		entries[len(must(newBank(again).entries.List(t.Context())).Items)] = true
		again.Close()
	}
	if len(entries) < 2 {
		t.Errorf("all %d copies were made at one time", len(left))
	}
}

// appended is a folder without the lock of whoever has it open.
type appended struct{ fs.FS }

func (a appended) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(a.FS, name)
	var some []fs.DirEntry
	for _, e := range all {
		if e.Name() != "lock" {
			some = append(some, e)
		}
	}
	return some, err
}

// A dryHook notes which of the attempts that it is told of are dry runs.
type dryHook struct{ said *[]string }

func (h dryHook) Begin(_ context.Context, verb Verb, _, _ runtime.Object, dryRun bool) (func(context.Context, Ending), error) {
	*h.said = append(*h.said, fmt.Sprint(verb, " ", dryRun))
	return nil, nil
}

func TestHooksOfATransactionKnowThatItIsDry(t *testing.T) {
	for _, dry := range []bool{true, false} {
		var said []string
		s := newStand(t, namespaced, func(c *Config) { c.Hooks = []Hook{dryHook{&said}} })
		s.made(thing("one", "is=red"))
		s.made(thing("two", "is=blue"))
		said = nil
		must(Transaction{DryRun: dry, Members: []Member{
			s.Creates("ns", thing("new"), CreateOptions{DryRun: dry}), s.Updates("ns", "one", setting("is=gold"), UpdateOptions{}), s.Deletes("ns", "two", nil),
		}}.Commit(t.Context()))
		if want := fmt.Sprintf("[create %v update %v delete %v]", dry, dry, dry); fmt.Sprint(said) != want {
			t.Errorf("told %v, want %v", said, want)
		}
	}
}

func TestHooksOfATransactionThatPanicsAreToldThatItFailed(t *testing.T) {
	s := newStand(t, namespaced)
	s.made(thing("one", "is=red"))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _ = Transact(t.Context(), s.Creates("ns", thing("new"), CreateOptions{}),
			s.Updates("ns", "one", func(context.Context, runtime.Object) (runtime.Object, error) { panic("oh") }, UpdateOptions{}))
	}()
	if got := s.hooked(); got != "begin 1: create, end 1: refused" {
		t.Errorf("hooks were told %s", got)
	}
}
