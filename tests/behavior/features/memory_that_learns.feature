Feature: Memory that learns
  Seed 002: what is stored is found again, patterns are recognised once and suggested, feedback changes the order, and weak
  memories go without being lost.

  Background:
    Given a memory context

  # AC-011-1
  Scenario: A memory is stored with its structure and found by its words
    When I add the interaction "User asked about authentication" in the project "test-app"
    Then recalling "authentication" gives "User asked about authentication" first
    And it has the type "interaction" and the project "test-app"

  Scenario: Related memories are linked
    Given the interaction "Token expiry is checked in the gateway middleware"
    When I add the interaction "Token expiry is now checked in the gateway middleware"
    Then the added memory links to the earlier one

  # AC-011-2
  Scenario: Similar memories become one pattern
    Given the interaction "create user login"
    And the interaction "create admin login"
    When I add the interaction "create guest login"
    Then there is exactly one pattern, "create {variable} login", with 3 occurrences
    And the rule for patterns made one piece of knowledge that names user, admin and guest

  Scenario: A pattern is updated, not repeated
    Given the interaction "create user login"
    And the interaction "create admin login"
    And the interaction "create guest login"
    When I add the interaction "create superuser login"
    Then there is exactly one pattern, "create {variable} login", with 4 occurrences

  Scenario: A pattern is suggested in similar contexts
    Given the interaction "create user login"
    And the interaction "create admin login"
    And the interaction "create guest login"
    Then recalling "create the auditor login" includes the pattern "create {variable} login"

  Scenario: Too few similar memories are no pattern
    Given the interaction "create user login"
    When I add the interaction "create admin login"
    Then there is no pattern

  # AC-011-3
  Scenario: The circumstances of the moment count
    Given the interaction "Deploy with make ship" in the project "shop"
    And the interaction "Deploy with make ship" in the project "blog"
    Then recalling "deploy" in the project "blog" gives a memory of the project "blog" first
    And recalling "deploy" in the project "shop" gives a memory of the project "shop" first

  Scenario: A situation brings its memories into the context of an agent
    Given the interaction "Deploy the shop with make ship" in the project "shop"
    When the context of an agent is injected with what is relevant to the tool "deploy"
    Then the context has one relevant memory, with type, content, relevance and context
    And what was in the context before is still there

  Scenario: Where nothing is relevant the context stays as it is
    Given the interaction "Deploy the shop with make ship" in the project "shop"
    When the context of an agent is injected with what is relevant to the tool "xylophone"
    Then the context is unchanged

  # AC-011-4
  Scenario: Feedback changes the order
    Given the interaction "Restart the worker when the queue stalls"
    And the interaction "Drain the queue when the worker stalls"
    When whatever comes first for "the queue stalls" gets negative feedback 3 times
    Then the other memory comes first for "the queue stalls"

  Scenario: Weak memories are pruned above the limit, and not lost
    Given a limit of 5 memories
    And 8 interactions about different things
    And positive feedback for the first of them
    When pruning is due and done
    Then there are 5 memories left
    And the first of them is still there
    And every pruned memory lies in the archive

  Scenario: The rules of the memory context are carried out
    Given the interaction "Deploy the shop with make ship" in the project "shop"
    When a task is completed with the outcome "It turned out that the cache was never cleared"
    And an agent is about to be given context for the tool "deploy"
    Then recalling "cache cleared" gives "It turned out that the cache was never cleared" first
    And the context has one relevant memory, with type, content, relevance and context

  Scenario: A memory context without rules does nothing by itself
    Given a memory context file without rules, which extends "universal/memory-base"
    And the interaction "Deploy the shop with make ship" in the project "shop"
    When a task is completed with the outcome "It turned out that the cache was never cleared"
    And an agent is about to be given context for the tool "deploy"
    Then recalling "cache cleared" gives nothing
    And the context is unchanged

  Scenario: What was learned is there in the next session
    Given the interaction "User asked about authentication"
    When the memory context is closed and opened again
    Then recalling "authentication" gives "User asked about authentication" first
