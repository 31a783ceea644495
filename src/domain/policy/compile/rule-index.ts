/** Finds the rules for a tool and operation without a scan of the others. */
import { isGlob } from "./glob.ts";
import { matchNames } from "./name-patterns.ts";

/** The members of a rule that the index reads. */
interface Rule {
  /** Position of the rule in its policy. */
  readonly order: number;
  /** Patterns of operations; null matches every operation. */
  readonly operations: readonly string[] | null;
  /** Patterns of agents; null matches every agent. */
  readonly agents: readonly string[] | null;
}

/** A rule, and the patterns of its tools; null matches every tool. */
export interface IndexedRule<Each extends Rule> {
  rule: Each;
  tools: readonly string[] | null;
}

/**
 * The rules of one policy, by tool and operation. An exact name is a key, a glob is found by the characters before its
 * first wildcard. So the cost of a decision does not depend on rules for other tools or operations.
 */
export class RuleIndex<Each extends Rule> {
  /** All rules, in written order. */
  readonly all: readonly Each[];
  readonly entries: readonly IndexedRule<Each>[];
  /** The exact names of the tools; null if a rule has a glob, or is for every tool. */
  readonly exactTools: ReadonlySet<string> | null;
  private readonly groups = new Map<string, IndexedRule<Each>[]>();
  /** Lengths of the literal prefixes of globs. */
  private readonly prefixLengths: readonly number[];

  constructor(rules: readonly IndexedRule<Each>[]) {
    const lengths = new Set<number>();
    const tools = new Set<string>();
    for (const indexed of rules) {
      const patterns = indexed.tools ?? ["*"];
      for (const pattern of patterns) {
        if (isGlob(pattern)) lengths.add(literalPrefix(pattern).length);
        tools.add(pattern);
      }
      const operations = indexed.rule.operations;
      const ofOperations = operations === null || operations.some(isGlob) ? [null] : operations;
      const keys = patterns.flatMap((tool) => ofOperations.map((operation) => keyOf(toolKey(tool), operation)));
      for (const key of new Set(keys)) {
        const group = this.groups.get(key);
        if (group === undefined) this.groups.set(key, [indexed]);
        else group.push(indexed);
      }
    }
    this.entries = rules;
    this.all = rules.map(({ rule }) => rule);
    this.exactTools = lengths.size > 0 ? null : tools;
    this.prefixLengths = [...lengths];
  }

  /**
   * Returns the rules that match the names, in written order.
   * @param names case-folded unless the policy is case-sensitive
   */
  find({ tool, operation, agent }: { tool: string; operation: string; agent: string }): readonly Each[] {
    const found: Each[] = [];
    let groups = 0;
    const add = (key: string): void => {
      const group = this.groups.get(key);
      if (group === undefined) return;
      groups += 1;
      for (const { rule, tools } of group)
        if (matchNames(tools, tool) && matchNames(rule.operations, operation) && matchNames(rule.agents, agent))
          found.push(rule);
    };
    const addTool = (key: string): void => {
      add(keyOf(key, operation));
      add(keyOf(key, null));
    };
    addTool(`=${tool}`);
    for (const length of this.prefixLengths) if (length <= tool.length) addTool(`^${tool.slice(0, length)}`);
    // A rule with several patterns can be in several groups.
    return groups < 2 ? found : [...new Set(found)].sort((a, b) => a.order - b.order);
  }
}

function toolKey(pattern: string): string {
  return isGlob(pattern) ? `^${literalPrefix(pattern)}` : `=${pattern}`;
}

/** Names contain no line feed. */
const keyOf = (tool: string, operation: string | null): string => (operation === null ? tool : `${tool}\n${operation}`);

function literalPrefix(glob: string): string {
  return glob.slice(0, glob.search(/[*?]/));
}
