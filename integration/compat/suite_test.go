package compat

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/features"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
)

// A trial is one of the reference's tests. Its name is that of the function it calls, and of what
// it is called with if there are several.
type trial struct {
	name string
	// alone is for those that set the process's features, and so must not run beside others.
	alone bool
	run   func(ctx context.Context, t *testing.T, s *subject)
}

// trials are all tests that the reference has for a storage.Interface.
var trials = []trial{
	{"RunTestCreate", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestCreate(ctx, t, s, s.validate)
	}},
	{"RunTestCreateWithTTL", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestCreateWithTTL(ctx, t, s)
	}},
	{"RunTestCreateWithKeyExist", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestCreateWithKeyExist(ctx, t, s)
	}},
	{"RunTestGet", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGet(ctx, t, s)
	}},
	{"RunTestUnconditionalDelete", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestUnconditionalDelete(ctx, t, s)
	}},
	{"RunTestConditionalDelete", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestConditionalDelete(ctx, t, s)
	}},
	{"RunTestDeleteWithSuggestion", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteWithSuggestion(ctx, t, s)
	}},
	{"RunTestDeleteWithSuggestionAndConflict", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteWithSuggestionAndConflict(ctx, t, s)
	}},
	{"RunTestDeleteWithConflict", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteWithConflict(ctx, t, s)
	}},
	{"RunTestDeleteWithSuggestionOfDeletedObject", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteWithSuggestionOfDeletedObject(ctx, t, s)
	}},
	{"RunTestValidateDeletionWithSuggestion", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestValidateDeletionWithSuggestion(ctx, t, s)
	}},
	{"RunTestValidateDeletionWithOnlySuggestionValid", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestValidateDeletionWithOnlySuggestionValid(ctx, t, s)
	}},
	{"RunTestPreconditionalDeleteWithSuggestion", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestPreconditionalDeleteWithSuggestion(ctx, t, s)
	}},
	{"RunTestPreconditionalDeleteWithOnlySuggestionPass", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass(ctx, t, s)
	}},
	{"RunTestList", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestList(ctx, t, s, s.compact, false, nil)
	}},
	{"RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError/codec", true, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError(ctx, t, s, s.codec.failing.Store)
	}},
	{"RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError/transformer", true, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError(ctx, t, s, s.seal.failing.Store)
	}},
	{"RunTestDeleteExpectedTransformOrDecodeError/codec", true, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteExpectedTransformOrDecodeError(ctx, t, s, s.codec.failing.Store)
	}},
	{"RunTestDeleteExpectedTransformOrDecodeError/transformer", true, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteExpectedTransformOrDecodeError(ctx, t, s, s.seal.failing.Store)
	}},
	{"RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError", true, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError(ctx, t, s)
	}},
	{"RunTestConsistentList", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestConsistentList(ctx, t, s, s.advance, false, true, false)
	}},
	{"RunTestGetListNonRecursive", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGetListNonRecursive(ctx, t, s.advance, s)
	}},
	{"RunTestGetListRecursivePrefix", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGetListRecursivePrefix(ctx, t, s)
	}},
	{"RunTestGetListWithErrorAggregation", true, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGetListWithErrorAggregation(ctx, t, s, errFlipped)
	}},
	{"RunTestGetListWithoutErrorAggregation", true, func(ctx context.Context, t *testing.T, s *subject) {
		featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.AllowUnsafeMalformedObjectDeletion, false)
		storagetesting.RunTestGetListWithoutErrorAggregation(ctx, t, newSubject(t, s.engine), errFlipped)
	}},
	{"RunTestListContinuation", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestListContinuation(ctx, t, s, s.counted)
	}},
	{"RunTestListPaginationRareObject", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestListPaginationRareObject(ctx, t, s, s.counted)
	}},
	{"RunTestListContinuationWithFilter", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestListContinuationWithFilter(ctx, t, s, s.counted)
	}},
	{"RunTestListInconsistentContinuation", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestListInconsistentContinuation(ctx, t, s, s.compact)
	}},
	{"RunTestListResourceVersionMatch", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestListResourceVersionMatch(ctx, t, s)
	}},
	{"RunTestGuaranteedUpdate", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGuaranteedUpdate(ctx, t, s, s.validate)
	}},
	{"RunTestGuaranteedUpdateWithTTL", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGuaranteedUpdateWithTTL(ctx, t, s)
	}},
	{"RunTestGuaranteedUpdateChecksStoredData", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGuaranteedUpdateChecksStoredData(ctx, t, s)
	}},
	{"RunTestGuaranteedUpdateWithConflict", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGuaranteedUpdateWithConflict(ctx, t, s)
	}},
	{"RunTestGuaranteedUpdateWithSuggestionAndConflict", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict(ctx, t, s)
	}},
	{"RunTestTransformationFailure", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestTransformationFailure(ctx, t, s)
	}},
	{"RunTestStats/with sizes", false, func(ctx context.Context, t *testing.T, s *subject) {
		if err := s.EnableResourceSizeEstimation(func(context.Context) ([]string, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
		storagetesting.RunTestStats(ctx, t, s, s.codec, s.seal, true)
	}},
	{"RunTestStats/without sizes", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestStats(ctx, t, s, s.codec, s.seal, false)
	}},
	{"RunTestListPaging", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestListPaging(ctx, t, s)
	}},
	{"RunTestNamespaceScopedList", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestNamespaceScopedList(ctx, t, s)
	}},
	{"RunTestCompactRevision", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestCompactRevision(ctx, t, s, s.advance, s.compact)
	}},
	{"RunTestKeySchema", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestKeySchema(ctx, t, s)
	}},

	{"RunTestWatch", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatch(ctx, t, s)
	}},
	{"RunTestWatchFromZero", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatchFromZero(ctx, t, s, s.compact)
	}},
	{"RunTestDeleteTriggerWatch", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDeleteTriggerWatch(ctx, t, s)
	}},
	{"RunTestWatchFromNonZero", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatchFromNonZero(ctx, t, s)
	}},
	{"RunTestDelayedWatchDelivery", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestDelayedWatchDelivery(ctx, t, s)
	}},
	{"RunTestWatchError", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatchError(ctx, t, s)
	}},
	{"RunTestWatchWithUnsafeDelete", true, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatchWithUnsafeDelete(ctx, t, s, errFlipped)
	}},
	{"RunTestWatchContextCancel", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatchContextCancel(ctx, t, s)
	}},
	{"RunTestWatcherTimeout", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatcherTimeout(ctx, t, s)
	}},
	{"RunTestWatchDeleteEventObjectHaveLatestRV", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV(ctx, t, s)
	}},
	{"RunTestWatchInitializationSignal", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatchInitializationSignal(ctx, t, s)
	}},
	{"RunOptionalTestProgressNotify", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunOptionalTestProgressNotify(ctx, t, s, s.advance)
	}},
	{"RunTestClusterScopedWatch", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestClusterScopedWatch(ctx, t, s)
	}},
	{"RunTestNamespaceScopedWatch", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestNamespaceScopedWatch(ctx, t, s)
	}},
	{"RunTestWatchDispatchBookmarkEvents", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, s, true)
	}},
	{"RunTestOptionalWatchBookmarksWithCorrectResourceVersion", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunTestOptionalWatchBookmarksWithCorrectResourceVersion(ctx, t, s)
	}},
	{"RunSendInitialEventsBackwardCompatibility", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunSendInitialEventsBackwardCompatibility(ctx, t, s)
	}},
	{"RunWatchSemantics", true, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunWatchSemantics(ctx, t, s)
	}},
	{"RunWatchSemanticInitialEventsExtended", true, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunWatchSemanticInitialEventsExtended(ctx, t, s)
	}},
	{"RunWatchListMatchSingle", true, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunWatchListMatchSingle(ctx, t, s)
	}},
	{"RunWatchErrorIsBlockingFurtherEvents", false, func(ctx context.Context, t *testing.T, s *subject) {
		storagetesting.RunWatchErrorIsBlockingFurtherEvents(ctx, t, s)
	}},
}

// TestReference runs all of the reference's tests on a store over each engine. That unreadable objects
// may be deleted is a feature that is on unless a trial turns it off.
func TestReference(t *testing.T) {
	for _, tr := range trials {
		t.Run(tr.name, func(t *testing.T) {
			if !tr.alone {
				t.Parallel()
			}
			for name, open := range engines {
				t.Run(name, func(t *testing.T) {
					if !tr.alone {
						t.Parallel()
					}
					if tr.alone {
						featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.AllowUnsafeMalformedObjectDeletion, true)
					}
					tr.run(t.Context(), t, newSubject(t, open(t)))
				})
			}
		})
	}
}

var _ runtime.Codec = (*fallible)(nil)
