# frozen_string_literal: true

require "tempfile"
require "pitwall/record"
require "pitwall/record/import"
require "pitwall/analyse"
require_relative "random_recording"

# Imports bytes, and reads the recording that comes out.
module Imported
  Import = Pitwall::Record::Import
  REAL = File.expand_path("../fixtures/real", __dir__)

  def self.recording(bytes, name: "profile", **options)
    Tempfile.create([name, ""]) do |file|
      file.binmode
      file.write(bytes)
      file.flush
      out = StringIO.new("".b)
      Import.open(file.path, **options).write_to(out)
      out.string
    end
  end

  def imported(bytes, **options) = RandomRecording.read(Imported.recording(bytes, **options))

  # A file of test/fixtures/real.
  def real(path) = File.binread(File.join(REAL, path))

  # The message of the refusal.
  def refused(bytes, **options)
    assert_raises(Pitwall::BadRecording) { Imported.recording(bytes, **options) }.message
  end

  # Names of the stacks from the root to the leaf → weights, of all threads together.
  def stacks(recording, weight = :wall)
    tree = Pitwall::Analyse::CallTreeBuilder.build(recording.segments, weights: [weight])
    sums = Hash.new(0)
    tree.selfs(weight).each_with_index do |own, node|
      next if own.zero?

      path = []
      while node.positive?
        path.unshift(tree.methods[tree.node_methods[node]].name)
        node = tree.parents[node]
      end
      sums[path] += own
    end
    sums
  end

  # Name → [self, total], recursion counted once.
  def methods(recording, weight = :wall)
    tree = Pitwall::Analyse::CallTreeBuilder.build(recording.segments, weights: [weight])
    Pitwall::Analyse::Flat.rows(tree, weight).to_h { |row| [row.method.name, [row.own, row.total]] }
  end
end
