import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { need, unmet } from '../testing';
import { ALL_REASONS, baseBeside, reason, shown } from './reasons';
import { ageWords, explanation, path } from './wording';

const NEVER = [/pod count/i, /another shard/i, /other shard/i, /spot tier/i, /fewer pods/i];

describe('reasons', () => {
  it('have the words of every other surface', () => {
    const source = readFileSync(new URL('../../../crates/model/src/unmet.rs', import.meta.url), 'utf8');
    // Rust strings are broken over lines with a backslash.
    const text = source.replace(/\\\n\s*/g, '');
    for (const { name, action } of ALL_REASONS) {
      expect(text, name).toContain(`"${name}"`);
      expect(text, name).toContain(`"${action}"`);
    }
    const names = [...text.matchAll(/^ {4}"([A-Z_]+)",$/gm)].map((match) => match[1]);
    expect(names).toEqual(['UNSPECIFIED', ...ALL_REASONS.map((one) => one.name)]);
  });

  it('have the colours of the specification', () => {
    const tones = Object.fromEntries(ALL_REASONS.map(({ name, tone }) => [name, tone]));
    expect(tones).toEqual({
      PRIORITY_STARVED: 'amber',
      NO_MATCHING_SUPPLY: 'red',
      TOPOLOGY_UNSATISFIABLE: 'violet',
      PREEMPTION_EXHAUSTED: 'amber',
      SPREAD_UNSATISFIABLE: 'violet',
      BOOTSTRAP_REFUSED: 'red',
      PROVIDER_FAILING: 'red',
      NO_SESSION: 'grey',
      PREEMPTION_UNDER_WAY: 'blue',
      QUOTA_EXHAUSTED: 'amber',
    });
  });

  it('show the detail and keep the base beside it', () => {
    expect(shown('PRIORITY_STARVED', 'NO_SESSION').name).toBe('NO_SESSION');
    expect(shown('PRIORITY_STARVED', null).name).toBe('PRIORITY_STARVED');
    expect(shown('PRIORITY_STARVED', 'UNSPECIFIED').name).toBe('PRIORITY_STARVED');
    expect(baseBeside('PRIORITY_STARVED', 'NO_SESSION')?.name).toBe('PRIORITY_STARVED');
    expect(baseBeside('PRIORITY_STARVED', null)).toBeNull();
  });

  it('that are not known are shown as they are', () => {
    expect(reason('SOMETHING_NEW').title).toBe('something new');
    expect(reason('UNMET_REASON_NO_MATCHING_SUPPLY').name).toBe('NO_MATCHING_SUPPLY');
    expect(reason(null).name).toBe('UNSPECIFIED');
  });
});

describe('wording', () => {
  const texts = ALL_REASONS.flatMap(({ name, action, title }) => {
    const one = unmet({ unmetReason: name, claimedMachineCount: 2 });
    return [action, title, explanation(one), ...path(one).map((step) => step.text)];
  });

  it('never advises what cannot be done', () => {
    for (const text of texts) for (const never of NEVER) expect(text).not.toMatch(never);
  });

  it('differs for every reason', () => {
    const all = ALL_REASONS.map(({ name }) => explanation(unmet({ unmetReason: name })));
    expect(new Set(all).size).toBe(ALL_REASONS.length);
  });

  it('counts machines held and new', () => {
    expect(explanation(need({ claimedMachineCount: 4, bootstrapCount: 1, provisionCount: 2 }))).toBe(
      'It holds 4 machines, 3 of them new this cycle.',
    );
    expect(explanation(need({ claimedMachineCount: 1 }))).toBe('It holds 1 machine, none of them new this cycle.');
    expect(explanation(unmet({ claimedMachineCount: 2 }))).toContain('It holds 2 machines so far.');
  });

  it('escalates above five cycles', () => {
    expect(ageWords(unmet({ ageCyclesUnmet: 5 }))).toBe('unmet for 5 cycles');
    expect(ageWords(unmet({ ageCyclesUnmet: 6 }))).toBe('unmet for 6 cycles, escalated');
    expect(ageWords(need())).toBe('not waiting');
  });

  it('tells the path with the numbers of the engine', () => {
    const one = unmet({
      claimedMachineCount: 5,
      bootstrapCount: 1,
      provisionCount: 1,
      preemption: { victimsFound: 2, capacityFreed: {} },
    });
    expect(path(one).map((step) => step.text)).toEqual([
      'kept 3 machines, took 1 idle and 1 to be created',
      'found 2 victims, too little was freed',
    ]);
    expect(path(unmet({ acquisitionParked: true }))[0]?.text).toContain('parked');
    expect(path(unmet({ unmetDetail: 'PREEMPTION_UNDER_WAY' }))[1]?.text).toContain('draining');
  });
});
