"""Long proofs of which one whole run makes a share, another one with each commit: `make proofs` makes all of them.

What rotates is named here, with the number of turns of which one meets a test.
"""

import os
import subprocess
import time
import zlib
from pathlib import Path
from typing import NamedTuple

import pytest

TURNS = 12
"""What the number of every group divides, so that a turn is one small number."""
_EVEN = 438
"""Any number will do; by this one all turns took alike, within a twentieth, when it was chosen."""


class Group(NamedTuple):
    """Tests of which one turn makes every `of`-th, in the order in which they are collected."""

    of: int
    file: str
    names: tuple[str, ...]
    whole: bool = False
    """All in one turn, for they share what takes long to make."""

    def is_due(self, place: int, turn: int) -> bool:
        """Whether the test at this place is met in a turn; groups do not all begin at their first test."""
        first = zlib.crc32(f"{_EVEN} {' '.join(self.names)}".encode())
        return ((0 if self.whole else place) + turn + first) % self.of == 0


def _group(of: int, file: str, *names: str, whole: bool = False) -> Group:
    return Group(of, f"test_{file}.py", tuple(f"test_{name}" for name in names), whole)


GROUPS = (
    # jobs of torch, each another example of what its neighbours prove
    _group(12, "checks", "a_run_shows_what_the_page_claims"),
    _group(12, "account", "program_has_the_line_of_the_mistake_and_its_values"),
    _group(6, "labs", "lab_fails_is_diagnosed_and_works"),
    _group(6, "learn", "program_of_a_guide_runs_as_its_first_line_says"),
    _group(6, "notebooks", "a_notebook_shows_what_it_tells_and_leaves_no_process"),
    _group(4, "faults", "dumps_of_jobs_with_a_fault_name_the_culprit"),
    _group(4, "faults", "a_job_with_a_fault_under_dtdebug_run_gets_the_right_verdict"),
    _group(6, "verdicts", "a_hang_that_was_measured_is_the_verdict_however_the_job_ends"),
    _group(4, "verdicts", "a_rank_that_finished_while_others_need_it_has_left"),
    _group(4, "verdicts", "a_job_that_is_ended_before_the_verdict_tells_the_test_that_parted_its_ranks"),
    _group(4, "verdicts", "a_rank_that_hangs_before_any_group_exists_is_seen_though_it_computed_at_the_first_look",
           "what_nothing_explains_is_not_understood_and_ended_only_if_asked_for_by_name",
           "a_job_that_is_slow_is_not_ended"),
    _group(4, "watch", "a_silent_fault_is_named_with_step_ranks_and_line"),
    _group(2, "run", "the_rank_that_failed_is_named_and_not_its_victims"),
    _group(4, "run", "ranks_of_an_earlier_attempt_are_told_and_not_compared", "a_healthy_job_is_not_changed"),
    _group(4, "waiting", "every_rank_of_a_real_job_says_what_it_waits_in"),
    _group(6, "planted", "a_planted_fault_strikes_where_the_truth_says"),
    _group(4, "handoff", "a_real_run_that_fails_is_handed_on_until_it_succeeds"),
    _group(6, "parity_layers", "a_fault_of_a_public_report_is_named", "a_healthy_twin_agrees_with_one_process"),
    _group(12, "parity", "a_fault_of_a_public_report_is_named_with_its_factor",
           "a_healthy_twin_agrees_with_one_process",
           "where_the_first_value_that_is_not_finite_begins",
           "what_is_not_covered_is_said_instead_of_a_verdict",
           "a_mask_of_infinite_values_is_no_finding"),
    _group(4, "watch", "a_healthy_training_is_left_alone", "a_violated_invariant_is_said_while_the_job_runs"),
    _group(4, "course", "two_runs_are_the_same_or_part_at_one_place", "a_rank_is_replayed_alone",
           "a_rehearsal_finds_the_rank_that_skips_a_collective", whole=True),
    _group(6, "call_plan", "the_rank_that_leaves_the_contract_names_itself_at_the_call"),
    _group(6, "resume", "more_that_is_lost_is_named_with_its_line", "ranks_that_resume_in_part_are_named",
           "a_sharded_model_with_a_distributed_checkpoint_is_followed", whole=True),
    _group(2, "agent", "children_that_set_up_their_group_themselves_are_ranks_and_their_parent_is_none"),
    _group(2, "agent", "the_record_says_what_ended_the_main_thread_and_where"),
    _group(2, "agent", "a_held_interpreter_lock_leaves_the_roads_that_do_without",
           "a_folder_that_goes_away_is_none_of_the_jobs_business", "a_script_arms_itself_and_its_children",
           "the_address_stands_in_the_jobs_store_and_the_token_does_not"),
    _group(2, "course", "a_full_disk_stops_the_recording_and_not_the_job"),
    _group(3, "remote", "a_rank_in_another_network_is_found_through_the_jobs_store",
           "addresses_are_read_from_the_jobs_store_by_the_latest_attempt"),
    _group(4, "hosts", "one_host_reports_for_all_that_share_a_folder"),
    _group(6, "hosts", "a_healthy_job_of_two_hosts_says_nothing",
           "hosts_without_a_folder_in_common_accuse_nobody_elsewhere_and_are_joined",
           "launchers_that_do_not_meet_are_reported_within_the_limit"),
    _group(4, "isolate", "a_variable_of_the_environment_is_found_and_no_file_is_touched",
           "a_file_outside_of_the_folder_is_not_overwritten",
           "an_interrupt_keeps_what_was_found_and_leaves_nothing_behind",
           "the_fault_of_a_lab_is_found_with_the_patch_that_mends_it"),
    _group(6, "isolate_changes", "the_job_fails_as_it_is_and_runs_with_the_change"),
    _group(4, "doctor_hosts", "healthy_hosts_get_no_fault", "a_fault_is_named_with_its_host_and_cause",
           "the_forecast_is_what_real_gloo_does"),
    # notebooks of which ranks hang or fail, beside the first of each kind
    _group(6, "hang_kernel", "the_first_answer_after_ranks_have_stopped_tells_so_and_the_card_of_the_time_out_too",
           "ranks_of_torchrun_are_found", "forked_ranks_of_a_function_of_the_notebook_are_found",
           "a_hang_is_drawn_and_its_ranks_are_ended", "a_kernel_that_is_a_rank_counts_itself",
           "kernels_that_are_ranks_of_one_group_know_of_each_other",
           "an_interrupted_cell_says_which_rank_the_others_wait_for",
           "the_job_at_hand_is_not_mixed_with_an_earlier_one"),
    _group(4, "hang_kernel", "a_job_that_moves_is_never_called_a_hang"),
    _group(4, "kernel", "what_a_rank_raised_is_told_with_its_line", "what_earlier_ranks_left_does_not_count",
           "a_run_of_ours_in_a_cell_gets_no_second_card"),
    _group(3, "kernel", "a_rank_that_is_killed_is_measured_as_killed_by_a_signal",
           "a_function_of_the_notebook_is_found_through_the_output_of_its_ranks", "the_elastic_launcher_names_the_rank",
           "a_failing_torchrun_command_names_the_rank", "a_diagnosis_in_a_cell_is_gone_on_from",
           "the_wizard_goes_on_after_a_restart_of_the_kernel"),
    _group(4, "kernel", "tracebacks_are_byte_for_byte_as_without_the_extension"),
    _group(3, "jupyter_server", "without_py_spy_the_announced_file_tells"),
    _group(4, "jupyter_server", "a_kernel_without_the_extension_is_looked_at_and_the_line_to_type_is_told",
           "the_server_answers_others_while_it_looks", "of_a_dead_kernel_its_death_is_told",
           "a_defect_of_ours_is_one_line_too", "a_server_without_the_extension_says_that_there_is_nothing",
           "workers_of_a_pool_or_a_loader_are_no_ranks_and_those_who_are_connected_are",
           "a_kernel_that_keeps_the_interpreter_lock_is_told_of", "a_kernel_below_a_wrapper_is_found"),
    _group(3, "hang_kernel", "the_line_of_the_cell_is_told_while_it_hangs", "the_wizard_answers_while_a_cell_hangs",
           "a_kernel_that_is_asked_while_a_cell_runs_stays_busy_for_its_server",
           "after_a_death_the_wizard_knows_the_cell"),
    _group(4, "jupyterlab", "the_answer_stands_under_the_traceback_and_the_wizard_can_be_clicked_through"),
    # clusters, each of another maker
    _group(3, "adapters", "dask_workers_answer_beside_a_stuck_task_and_their_nanny_where_they_can_not",
           "ray_workers_are_looked_at_on_this_node_and_by_a_task_on_others",
           "a_stuck_engine_of_ipyparallel_is_looked_at_from_outside"),
    _group(2, "jupyter_server", "engines_that_are_ranks_are_told_once_no_client_can_ask_them"),
    _group(4, "triage_engines", "a_worker_that_dies_counts_nothing_twice_and_a_lost_part_is_named",
           "ray_does_the_task_of_a_worker_that_died_again_and_a_lost_part_is_named"),
    _group(4, "doctor_ways", "srun_and_kubectl_start_doctors_that_meet",
           "hosts_that_cannot_meet_are_heard_in_the_shared_folder", "much_data_names_the_host_where_it_is_lost",
           "nodes_of_a_ray_cluster_are_examined_by_tasks_on_them"),
    _group(3, "binder", "repo2docker_makes_a_recipe_of_our_files", "the_packages_can_be_had",
           "post_build_installs_dtdebug_and_lays_out_the_notebooks"),
    # front ends: what is the same in JupyterLab and Notebook 7, in both themes, in windows of any width
    _group(6, "panel", "it_goes_on_after_a_reload_of_the_page_and_a_restart_of_the_kernel",
           "a_corrupted_memory_is_one_line", "the_keyboard_alone_is_enough"),
    _group(6, "panel", "from_two_failed_ranks_to_a_green_run"),
    _group(6, "panel", "a_kernel_that_can_not_answer", "without_the_server_s_part_an_idle_kernel_answers",
           "two_browsers_on_one_kernel", "nothing_is_asked_while_nobody_looks", "the_history_of_a_notebook",
           "an_answer_beside_a_running_cell_is_known_to_the_magic", "a_saved_notebook_that_nobody_trusts",
           "the_panel_opens_by_itself_where_its_user_wants_it", "nothing_of_ours_stays_when_a_notebook_closes"),
    _group(4, "panel", "the_launcher_opens_a_wizard_that_needs_no_notebook",
           "lessons_and_labs_are_opened_from_launcher_palette_and_help"),
    _group(2, "labextension", "the_card_stands_above_the_traceback_and_an_answer_is_a_cell_below"),
    _group(6, "labextension", "one_click_diagnoses_in_a_kernel_that_has_not_loaded_dtdebug",
           "the_keyboard_alone_is_enough", "a_saved_notebook_that_nobody_trusts_shows_its_card_and_its_button",
           "other_errors_look_as_they_did", "the_palette_diagnoses_the_last_failed_cell",
           "nothing_is_cut_off_in_a_narrow_window"),
    _group(6, "labextension", "the_fix_of_the_users_own_line_is_applied_to_its_cell",
           "a_fix_of_two_cells_is_applied_to_both_and_undone_in_each",
           "a_saved_failure_is_diagnosed_by_a_fresh_kernel",
           "a_kernel_without_dtdebug_is_offered_the_line_that_installs_it",
           "a_busy_kernel_answers_when_it_has_time", "what_a_reader_says_stays_in_jupyterlabs_state"),
    _group(3, "labextension", "the_card_can_be_read_in_every_theme"),
    _group(4, "hang_lab", "a_page_that_has_not_started_the_cell_is_told_too",
           "eight_ranks_a_quiet_user_and_a_page_that_is_loaded_again",
           "a_kernel_that_holds_the_interpreter_lock_is_seen_by_the_server", "a_cell_that_only_takes_long_is_no_hang",
           "the_wizard_in_a_subshell_answers_while_the_cell_runs",
           "ranks_that_an_interrupted_cell_has_left_are_ended_from_any_notebook_after_a_reload",
           "a_cell_that_another_page_of_the_document_has_run_counts",
           "notebook_7_without_the_servers_part_asks_the_kernel_and_tells_it_in_a_notification"),
    _group(4, "doctor_card", "the_card_stands_in_jupyterlab_and_answers_questions"),
    _group(4, "jupyterlab_lsp", "a_mistake_is_underlined_in_a_notebook_and_in_a_file"),
    _group(4, "together", "a_failure_is_told_in_both_pages_and_changes_neither"),
    _group(12, "ranks_view", "it_fits_in_a_panel_of_any_width"),
    _group(2, "ranks_view", "axe_finds_nothing_serious"),
    _group(6, "site", "everything_known_has_a_page", "a_message_is_found_by_its_own_words",
           "links_inside_lead_somewhere", "links_outside_are_well_formed_and_spelt_in_one_way",
           "pages_load_nothing_from_elsewhere", "search_knows_every_check_and_symptom",
           "pages_fit_a_phone_and_ask_nobody_else", "a_pasted_line_finds_the_page_of_its_message_first",
           "search_finds_a_page_without_a_network", whole=True),
    _group(6, "vscode", "cells_are_checked_together_and_the_buttons_of_a_card_act",
           "a_card_changes_the_file_that_its_diff_names_and_undo_takes_it_back",
           "the_walkthrough_leads_from_a_squiggle_to_a_verdict_and_a_fix",
           "the_wizard_is_typed_once_into_its_terminal",
           "a_lab_is_chosen_and_fails_in_a_terminal_beside_its_script", "an_interpreter_without_dtdebug_is_named_once",
           "a_folder_that_is_not_trusted_names_no_program"),
    _group(3, "server", "every_client_gets_a_mistake_at_its_place_and_a_clean_slate_at_the_end"),
    _group(3, "server", "python_lsp_server_shows_what_the_plugin_sees"),
    # what changes only with a release of torch, or with what is known
    _group(6, "facts", "tables_of_torch_are_what_the_installed_torch_says"),
    _group(3, "docs", "code_blocks_hold"),
    # hostile input, generated
    _group(6, "hold", "whatever_the_kind_it_is_held"),
    _group(6, "flight_bounds", "a_hostile_dump_costs_no_more_than_itself"),
    _group(4, "flight_layouts", "no_statement_contradicts_a_dump"),
    _group(4, "flight_analyzer", "the_verdict_is_the_truth", "the_odd_rank_is_named_wherever_it_stands"),
    _group(3, "attack", "no_command_waits_for_a_pipe_that_nobody_writes_to", "what_never_ends_is_refused_in_one_line",
           "a_file_that_shrinks_while_it_is_read_ends_nothing"),
    _group(2, "matching", "a_literal_never_hides_a_match"),
    _group(2, "hostile", "any_text_is_diagnosed_and_shown_safely", "a_snapshot_that_nobody_cleaned_is_shown_safely_too",
           "the_terminal_wizard_shows_hostile_text_as_it_is"),
    _group(3, "hostile", "memory_is_bounded_whatever_the_size"),
    _group(4, "attack", "what_this_user_may_not_read_is_said_in_one_line"),
    _group(3, "view", "4096_ranks_are_drawn"),
    _group(6, "flight_loader", "any_value_in_any_field_of_an_entry", "any_value_in_any_field_of_a_dump",
           "a_million_empty_entries_are_no_entries"),
    _group(3, "flight_loader", "damage_to_one_dump_is_told_in_a_line"),
    _group(3, "ranks_hostile", "whatever_a_rank_does_its_end_is_its_own"),
)  # fmt: skip
"""What comes first in a user's day never rotates: the demo, one failure and one hang.

Of JupyterLab and Notebook 7, one shows the failed ranks under their cell, in turn.
"""


def add_option(parser: pytest.Parser) -> None:
    """`--share`: nothing or `all` runs what is named; `commit`, or a turn, a share of what rotates."""
    parser.addoption(
        "--share",
        default="all",
        metavar="TURN",
        help=f"share of the long proofs: 'all', 'commit', or a turn from 0 to {TURNS - 1}",
    )


def turn_of(wanted: str, root: Path) -> int | None:
    """The turn of a run, none if it makes all proofs; that of the commit, or of the day where git knows of none."""
    if wanted == "all":
        return None
    if wanted != "commit":
        try:
            turn = int(wanted)
        except ValueError:
            turn = -1
        if turn not in range(TURNS):
            raise pytest.UsageError(f"--share {wanted}: 'all', 'commit', or a number from 0 to {TURNS - 1}")
        return turn
    try:
        asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False)
        return int(asked.stdout, 16) % TURNS
    except (OSError, ValueError):
        return int(time.time() // 86_400) % TURNS


def configure(config: pytest.Config) -> None:
    """The turn is settled once and handed to all workers, which may begin before midnight and after it."""
    if not hasattr(config, "workerinput"):
        turn = turn_of(config.getoption("--share"), config.rootpath)
        os.environ["DTDEBUG_TURN"] = "" if turn is None else str(turn)


def header() -> str | None:
    """The line at the start of a run by which a failure can be repeated."""
    if turn := os.environ["DTDEBUG_TURN"]:
        return f"long proofs: turn {turn} of {TURNS}; the same again: make test SHARE={turn}; all: make proofs"
    return None


_OF = {(group.file, name): group for group in GROUPS for name in group.names}


def group_of(item: pytest.Item) -> Group | None:
    """The group of a test; labs that are too many for any turn have none (`pytest -m labs`)."""
    return None if item.get_closest_marker("labs") else _OF.get((item.path.name, getattr(item, "originalname", "")))


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks what rotates, and leaves out what this turn does not meet."""
    turn = os.environ["DTDEBUG_TURN"]
    places: dict[Group, int] = {}
    left_out = []
    for item in items:
        if group := group_of(item):
            item.add_marker("rotating")
            places[group] = place = places.get(group, -1) + 1
            if turn and not group.is_due(place, int(turn)):
                left_out.append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = {id(item) for item in left_out}
        items[:] = [item for item in items if id(item) not in gone]
