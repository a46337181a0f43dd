package compat

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/features"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"

	"github.com/pawl-dev/pawl/kv/kvtest"
	"github.com/pawl-dev/pawl/kv/local"
)

// A trial is one of the reference's tests. Its name is that of the function it calls, and of what
// it is called with if there are several.
type trial struct {
	name string
	how  how
	run  func(ctx context.Context, t *testing.T, s *subject)
}

// How says in which circumstances a trial is run.
type how uint8

const (
	beside how = iota // others
	alone             // as it sets the process's features
	still             // while the engine's time stands still, or alone if it does not: it reads what has a second to live
)

// trials are all tests that the reference has for a storage.Interface.
var trials = []trial{
	{"RunTestCreate", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestCreate(ctx, t, s, s.validate)
	}},
	{"RunTestCreateWithTTL", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestCreateWithTTL(ctx, t, s)
	}},
	{"RunTestCreateWithKeyExist", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestCreateWithKeyExist(ctx, t, s)
	}},
	{"RunTestGet", still, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGet(ctx, t, s)
	}},
	{"RunTestUnconditionalDelete", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestUnconditionalDelete(ctx, t, s)
	}},
	{"RunTestConditionalDelete", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestConditionalDelete(ctx, t, s)
	}},
	{"RunTestDeleteWithSuggestion", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteWithSuggestion(ctx, t, s)
	}},
	{"RunTestDeleteWithSuggestionAndConflict", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteWithSuggestionAndConflict(ctx, t, s)
	}},
	{"RunTestDeleteWithConflict", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteWithConflict(ctx, t, s)
	}},
	{"RunTestDeleteWithSuggestionOfDeletedObject", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteWithSuggestionOfDeletedObject(ctx, t, s)
	}},
	{"RunTestValidateDeletionWithSuggestion", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestValidateDeletionWithSuggestion(ctx, t, s)
	}},
	{"RunTestValidateDeletionWithOnlySuggestionValid", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestValidateDeletionWithOnlySuggestionValid(ctx, t, s)
	}},
	{"RunTestPreconditionalDeleteWithSuggestion", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestPreconditionalDeleteWithSuggestion(ctx, t, s)
	}},
	{"RunTestPreconditionalDeleteWithOnlySuggestionPass", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass(ctx, t, s)
	}},
	{"RunTestList", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestList(ctx, t, s.singly(s), s.compactSingly, false, nil)
	}},
	{"RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError/codec", alone, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError(ctx, t, s, s.codec.failing.Store)
	}},
	{"RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError/transformer", alone, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError(ctx, t, s, s.seal.failing.Store)
	}},
	{"RunTestDeleteExpectedTransformOrDecodeError/codec", alone, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteExpectedTransformOrDecodeError(ctx, t, s, s.codec.failing.Store)
	}},
	{"RunTestDeleteExpectedTransformOrDecodeError/transformer", alone, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteExpectedTransformOrDecodeError(ctx, t, s, s.seal.failing.Store)
	}},
	{"RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError", alone, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError(ctx, t, s)
	}},
	{"RunTestConsistentList", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestConsistentList(ctx, t, s.singly(s), s.advance, false, true, false)
	}},
	{"RunTestGetListNonRecursive", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGetListNonRecursive(ctx, t, s.advance, s)
	}},
	{"RunTestGetListRecursivePrefix", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGetListRecursivePrefix(ctx, t, s)
	}},
	{"RunTestGetListWithErrorAggregation", alone, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGetListWithErrorAggregation(ctx, t, s, errFlipped)
	}},
	{"RunTestGetListWithoutErrorAggregation", alone, func(ctx context.Context, t *testing.T, s *subject) {
		featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.AllowUnsafeMalformedObjectDeletion, false)
		storagetesting.RunTestGetListWithoutErrorAggregation(ctx, t, newSubject(t, s.engine), errFlipped)
	}},
	{"RunTestListContinuation", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestListContinuation(ctx, t, s, s.counted)
	}},
	{"RunTestListPaginationRareObject", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestListPaginationRareObject(ctx, t, s, s.counted)
	}},
	{"RunTestListContinuationWithFilter", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestListContinuationWithFilter(ctx, t, s, s.counted)
	}},
	{"RunTestListInconsistentContinuation", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestListInconsistentContinuation(ctx, t, s, s.compact)
	}},
	{"RunTestListResourceVersionMatch", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestListResourceVersionMatch(ctx, t, s)
	}},
	{"RunTestGuaranteedUpdate", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGuaranteedUpdate(ctx, t, s, s.validate)
	}},
	{"RunTestGuaranteedUpdateWithTTL", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGuaranteedUpdateWithTTL(ctx, t, s)
	}},
	{"RunTestGuaranteedUpdateChecksStoredData", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGuaranteedUpdateChecksStoredData(ctx, t, s)
	}},
	{"RunTestGuaranteedUpdateWithConflict", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGuaranteedUpdateWithConflict(ctx, t, s)
	}},
	{"RunTestGuaranteedUpdateWithSuggestionAndConflict", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict(ctx, t, s)
	}},
	{"RunTestTransformationFailure", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestTransformationFailure(ctx, t, s)
	}},
	{"RunTestStats/with sizes", beside, func(ctx context.Context, t *testing.T, s *subject) {
		if err := s.EnableResourceSizeEstimation(func(context.Context) ([]string, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
		storagetesting.RunTestStats(ctx, t, s, s.codec, s.seal, true)
	}},
	{"RunTestStats/without sizes", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestStats(ctx, t, s, s.codec, s.seal, false)
	}},
	{"RunTestListPaging", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestListPaging(ctx, t, s)
	}},
	{"RunTestNamespaceScopedList", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestNamespaceScopedList(ctx, t, s)
	}},
	{"RunTestCompactRevision", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestCompactRevision(ctx, t, s, s.advance, s.compact)
	}},
	{"RunTestKeySchema", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestKeySchema(ctx, t, s)
	}},

	{"RunTestWatch", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatch(ctx, t, s)
	}},
	{"RunTestWatchFromZero", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatchFromZero(ctx, t, s, s.compact)
	}},
	{"RunTestDeleteTriggerWatch", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteTriggerWatch(ctx, t, s)
	}},
	{"RunTestWatchFromNonZero", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatchFromNonZero(ctx, t, s)
	}},
	{"RunTestDelayedWatchDelivery", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDelayedWatchDelivery(ctx, t, s)
	}},
	{"RunTestWatchError", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatchError(ctx, t, s)
	}},
	{"RunTestWatchWithUnsafeDelete", alone, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatchWithUnsafeDelete(ctx, t, s, errFlipped)
	}},
	{"RunTestWatchContextCancel", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatchContextCancel(ctx, t, s)
	}},
	{"RunTestWatcherTimeout", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatcherTimeout(ctx, t, s)
	}},
	{"RunTestWatchDeleteEventObjectHaveLatestRV", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV(ctx, t, s)
	}},
	{"RunTestWatchInitializationSignal", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatchInitializationSignal(ctx, t, s)
	}},
	{"RunOptionalTestProgressNotify", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunOptionalTestProgressNotify(ctx, t, s, s.advance)
	}},
	{"RunTestClusterScopedWatch", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestClusterScopedWatch(ctx, t, s)
	}},
	{"RunTestNamespaceScopedWatch", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestNamespaceScopedWatch(ctx, t, s)
	}},
	{"RunTestWatchDispatchBookmarkEvents", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, s, true)
	}},
	{"RunTestOptionalWatchBookmarksWithCorrectResourceVersion", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestOptionalWatchBookmarksWithCorrectResourceVersion(ctx, t, s)
	}},
	{"RunSendInitialEventsBackwardCompatibility", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunSendInitialEventsBackwardCompatibility(ctx, t, s)
	}},
	{"RunWatchSemantics", alone, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunWatchSemantics(ctx, t, s)
	}},
	{"RunWatchSemanticInitialEventsExtended", alone, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunWatchSemanticInitialEventsExtended(ctx, t, s)
	}},
	{"RunWatchListMatchSingle", alone, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunWatchListMatchSingle(ctx, t, s)
	}},
	{"RunWatchErrorIsBlockingFurtherEvents", beside, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunWatchErrorIsBlockingFurtherEvents(ctx, t, s)
	}},
}

// TestReference runs all of the reference's tests on a store over each engine. That unreadable objects
// may be deleted is a feature that is on unless a trial turns it off.
func TestReference(t *testing.T) {
	for _, tr := range trials {
		t.Run(tr.name, func(t *testing.T) {
			if tr.how == beside {
				t.Parallel()
			}
			for name, open := range engines {
				t.Run(name, func(t *testing.T) {
					var o local.Options
					switch {
					case tr.how == alone:
						featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.AllowUnsafeMalformedObjectDeletion, true)
					case tr.how == still && name == "etcd": // whose leases have a clock of their own
					case tr.how == still:
						o.Clock = kvtest.NewClock()
						fallthrough
					default:
						t.Parallel()
					}
					tr.run(t.Context(), t, newSubject(t, open(t, o)))
				})
			}
		})
	}
}

var _ runtime.Codec = (*fallible)(nil)
