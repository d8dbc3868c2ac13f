Feature: Memory that comes up by itself
  Seed 004: minimal in the system prompt, a warning where a situation is like one that went wrong, the rest on demand; fed by
  what became of it.

  Background:
    Given a memory layer

  # automatic
  Scenario: Where nothing is remembered nothing is added
    Then the system prompt gets nothing

  Scenario: What a person corrects is in the system prompt from then on
    When a person says "Thanks, that works. Don't use tabs in this project. What is next?"
    Then the system prompt has the heading "User preferences:"
    And the system prompt has the bullet "Don't use tabs in this project"
    And the system prompt does not say "What is next"

  Scenario: The system prompt is minimal
    Given the knowledge "The orders table has 40 columns"
    And the preference "Always answer in French" noted by an agent
    Then the system prompt gets nothing

  Scenario: What the agent is told anyway is not said twice
    Given the file "CLAUDE.md" says "- Don't use tabs in this project."
    When a person says "Don't use tabs in this project."
    And a person says "Always run the linter before a commit."
    Then the system prompt has the bullet "Always run the linter before a commit"
    And the system prompt does not say "tabs"

  Scenario: A number of preferences is a setting
    Given the settings {"preferences": {"max_items": 1}}
    When a person says "Don't use tabs in this project."
    And a person says "Always run the linter before a commit."
    Then the system prompt has 1 bullet

  # triggered
  Scenario: An edit of a file that caused issues before is warned about
    Given editing "src/auth.py" to "tighten the token check" failed with "test_login failed: KeyError 'sub'"
    Then before editing "src/auth.py" to "rename a variable" there is a warning
    And it has the heading "Past issues with similar context:"
    And it has the bullet "Edited src/auth.py: test_login failed: KeyError 'sub'"

  Scenario: Zero cost where nothing matches
    Given editing "src/auth.py" to "tighten the token check" failed with "test_login failed: KeyError 'sub'"
    Then before editing "web/menu.css" to "centre the lunch menu" there is no warning

  Scenario: What went well is no warning
    Given editing "src/auth.py" to "tighten the token check" went well
    Then before editing "src/auth.py" to "tighten the token check" there is no warning

  Scenario: A learned rule surfaces with its confidence
    Given the rule "Regenerate the client" for "change the api schema" with confidence 0.9
    Then before editing "api/schema.json" to "change the api schema" there is a warning
    And it has the heading "Learned patterns:"
    And it has the bullet "Regenerate the client (confidence: 90%)"

  Scenario: A rule that is not sure enough is kept back
    Given the rule "Regenerate the client" for "change the api schema" with confidence 0.6
    Then before editing "api/schema.json" to "change the api schema" there is no warning

  Scenario: Repeated failures become a rule
    Given editing "db/orders.sql" to "add a column to orders" failed with "psycopg: lock timeout on orders"
    And editing "db/stock.sql" to "add a column to stock" failed with "psycopg: lock timeout on stock"
    And editing "db/users.sql" to "add a column to users" failed with "psycopg: lock timeout on users"
    When failures are analysed
    Then before editing "db/labels.sql" to "add a column to labels" there is a warning
    And it has the heading "Learned patterns:"
    And it says "lock timeout"

  # on demand
  Scenario: An agent asks what happened last time
    Given editing "src/auth.py" to "tighten the token check" failed with "test_login failed: KeyError 'sub'"
    When the agent asks "What happened last time I modified auth.py?"
    Then the answer says "test_login failed"

  Scenario: The answer where nothing is found
    When the agent asks "What happened last time I modified auth.py?"
    Then the answer is "No relevant memories found."

  Scenario: The tool can be withdrawn
    Given the settings {"on_demand": false}
    Then the agent has no tool
    And asking is refused

  # sources
  Scenario: A source of one's own joins the others
    Given editing "src/auth.py" to "tighten the token check" failed with "test_login failed: KeyError 'sub'"
    And a source "tickets" that says "Ticket 7 is about this file"
    Then before editing "src/auth.py" to "rename a variable" there is a warning
    And it says "Ticket 7 is about this file"
    And it says "test_login failed"

  Scenario Outline: A source that fails breaks no other
    Given editing "src/auth.py" to "tighten the token check" failed with "test_login failed: KeyError 'sub'"
    And a source "tickets" that <fails>
    Then before editing "src/auth.py" to "rename a variable" there is a warning
    And it says "test_login failed"
    And the failure of "tickets" is reported

    Examples:
      | fails             |
      | raises            |
      | hangs             |
      | exits             |
      | answers no text   |

  Scenario: An unknown setting is refused with the nearest one
    Then the settings {"episodic": {"max_warning": 3}} are refused with "max_warnings"
