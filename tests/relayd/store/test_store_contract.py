"""What a store promises holds on PostgreSQL too: tests of each kind of statement, once more."""
# ruff: noqa: F401 - pytest collects what is imported

from __future__ import annotations

import pytest

from tests.relayd.sources.test_link_series import test_a_link_is_read_whole
from tests.relayd.store.engines import PostgresqlSpot
from tests.relayd.store.test_decisions import (
    test_confirmed_samples_are_the_own_probers,
    test_decisions_stay_and_retracted_samples_outlast_retention,
    test_each_part_of_a_selection_narrows_it,
)
from tests.relayd.store.test_quarantine import (
    test_pages_tell_who_sent_what_and_reasons_are_counted,
    test_what_is_accepted_counts_as_was_foreseen_and_what_is_rejected_stays,
)
from tests.relayd.store.test_retention import test_a_summary_says_what_its_samples_did
from tests.relayd.store.test_store_samples import (
    test_a_file_twice_leaves_the_database_as_it_was_and_a_grown_one_adds_its_rows,
    test_a_token_may_bring_so_many_series,
    test_filters,
    test_history_tells_where_each_sample_is_from,
    test_no_sample_can_be_changed,
    test_reports_read_what_tools_said_of_tests_that_kept_their_intervals,
    test_samples_that_differ_in_one_value_are_two,
    test_what_no_measurement_can_be_is_refused,
)
from tests.relayd.store.test_store_snapshots import (
    test_nobody_can_change_a_snapshot,
    test_pruning_removes_the_oldest_and_remembers_their_names,
    test_what_was_measured_last_of_each_link,
    test_what_was_saved_is_what_is_read,
)
from tests.relayd.store.test_verifications import test_what_was_kept_comes_back_and_calibrates_plans
from tests.relayd.test_campaigns import (
    test_a_campaign_is_found_again_with_what_is_left,
    test_replicas_never_reserve_the_same_money_of_a_day,
    test_samples_and_their_probe_are_kept_together_or_not_at_all,
)
from tests.relayd.test_transfers import (
    test_progress_against_plan_and_deadline,
    test_saying_it_again_changes_nothing_and_what_is_wrong_is_refused,
    wan,
)


@pytest.fixture
def spot(postgresql_spot: PostgresqlSpot) -> PostgresqlSpot:
    """Return an empty database on a server, in place of a folder."""
    return postgresql_spot
