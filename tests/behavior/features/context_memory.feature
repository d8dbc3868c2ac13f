Feature: Context memory for a long-running multi-agent system (seed 001)
  A supervisor, specialised agents and a meta-reviewer work for days. Their state survives crashes, and what one
  iteration taught is in the prompts of the next.

  Background:
    Given a context memory

  Scenario: Every state update can be had again by its time
    When the supervisor stores a periodic update with 3 hypotheses
    And the supervisor stores a periodic update with 5 hypotheses
    Then the acknowledgement names the document, its checksum, its bytes and how long storing took
    And a summary of the state tells of 5 hypotheses
    And both updates are found between the first and the last moment

  Scenario: An agent's output is filed under its iteration, agent and task
    Given iteration 1 is open
    When the agent "Evolution Agent" stores an output for the task "Task/7"
    Then the state of "Evolution Agent" has that output
    And no other agent has a state

  Scenario: A value that does not fit is refused with the name of its field
    When the supervisor stores an update whose tournament progress is "half"
    Then it is refused, naming "system_statistics.tournament_progress"
    And nothing was stored

  Scenario: A checkpoint update creates a checkpoint that recovery goes on from
    When the supervisor stores a checkpoint update with the task "rank-1" in flight
    And the agent "Ranking" stores an output for the task "rank-0"
    Then recovering names that checkpoint, with the task "rank-1" to be done again
    And the output for "rank-0" is still there

  Scenario: A damaged checkpoint is passed over
    When the supervisor stores a checkpoint update with the task "rank-1" in flight
    And the supervisor stores a checkpoint update with the task "rank-2" in flight
    And a byte of the newest checkpoint is flipped
    Then recovering names the earlier checkpoint, with the task "rank-1" to be done again
    And it says which checkpoint was rejected

  Scenario: A token is good until the task's final output
    When the agent "Reflection" puts the task "review-1" down with a token
    Then the token can be resumed, twice, also by another handle
    When the agent "Reflection" stores an output for the task "review-1"
    Then the token is refused
    And a made-up token is refused

  Scenario: What the meta-review says reaches the agents of the next iteration
    Given iteration 3 is open
    When the meta-review of iteration 3 tells "Generation" to "name the mechanism"
    And iteration 3 is closed
    And iteration 4 is open
    Then the latest feedback is that of iteration 3
    And the prompt of "Generation" has "name the mechanism"
    And the prompt of "Ranking" has no "name the mechanism"
    And the version given to "Generation" is recorded in iteration 4

  Scenario: Two writers of one hypothesis lose nothing
    Given the hypothesis "h1" with 1 match
    When two handles each count another match of "h1"
    Then the hypothesis "h1" has 3 matches

  Scenario: Archived iterations answer like any other
    Given a policy that keeps closed iterations for 0 days
    And iteration 1 is open
    When the agent "Generation" stores an output for the task "g-1"
    And iteration 1 is closed
    And what is due is archived
    Then iteration 1 no longer has a folder
    And the output of iteration 1 is still found
