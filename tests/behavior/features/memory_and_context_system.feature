Feature: Memory and context system
  Seed 000: items land in the layer of their type, the context of a session stands beside them, and the latest content is
  what everybody sees.

  Background:
    Given a layered memory and a context manager in one workspace

  Scenario Outline: Items land in the layer of their type
    When I store "<content>" as "<type>"
    Then the item is in the "<layer>" layer and in no other
    And it can be retrieved by the id that was returned

    Examples:
      | type         | content                        | layer      |
      | CONTEXT      | The user works on checkout     | short-term |
      | TASK_HISTORY | Migrated the orders table      | episodic   |
      | KNOWLEDGE    | Orders are kept for ten years  | semantic   |
      | WORKING      | Comparing two retry policies   | short-term |
      | ERROR_LOG    | Timeout while calling payments | episodic   |
      | PROCEDURAL   | Roll forward, never back       | semantic   |

  Scenario: An identifier is generated only when none is given
    When I store "made up" as "KNOWLEDGE"
    And I store "named by me" as "KNOWLEDGE" with the id "mine"
    Then each of them has an id of its own
    And "mine" holds "named by me"

  Scenario: Storing an identifier again replaces the content
    Given "draft" is stored as "CONTEXT" with the id "plan"
    When I store "final" as "CONTEXT" with the id "plan"
    Then "plan" holds "final"
    And the "short-term" layer holds exactly "final"

  Scenario: An item whose type changes moves to its new layer
    Given "we may use Redis" is stored as "CONTEXT" with the id "cache"
    When I store "we use Redis" as "KNOWLEDGE" with the id "cache"
    Then the "short-term" layer is empty
    And the "semantic" layer holds exactly "we use Redis"

  Scenario: The full context has all keys with their latest values
    When I add "phase" with the value "expand" to the context
    And I add "owner" with the value "Ada" to the context
    And I add "phase" with the value "refine" to the context
    Then the full context is
      | key   | value  |
      | phase | refine |
      | owner | Ada    |
    And the context gives "Ada" for "owner"
    And the context gives nothing for "unknown"

  Scenario: Memory operations do not disturb the context
    Given the context has "ticket" with the value "SHOP-12"
    When I store "one" as "CONTEXT" with the id "same"
    And I store "two" as "KNOWLEDGE" with the id "same"
    And I store "three" as "TASK_HISTORY"
    Then the context gives "SHOP-12" for "ticket"

  Scenario: Everything is there after a restart
    Given "kept" is stored as "KNOWLEDGE" with the id "fact"
    And the context has "ticket" with the value "SHOP-12"
    When the workspace is closed and opened again
    Then "fact" holds "kept"
    And the context gives "SHOP-12" for "ticket"

  Scenario: Items carry the phase of the work
    Given "brainstorm" is stored as "EPISODIC" in the phase "expand"
    And "lessons" is stored as "EPISODIC" in the phase "retrospect"
    Then the "episodic" layer in the phase "retrospect" holds exactly "lessons"
