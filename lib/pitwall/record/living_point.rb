# frozen_string_literal: true

module Pitwall
  module Record
    # How many of each site's objects survived one garbage collection.
    #
    # number: from 1 on, gaps where some were lost · at_ns: since the segment's start · rss: resident memory in bytes, nil where the
    # system did not tell · flags: bits FULL (a full mark: what lived was reachable; after a minor collection the counts are
    # upper bounds), AT_END (the collection that Pitwall asked for at the end) · sites, counts: arrays side by side, of those
    # that had living objects · births: rows of Births, nil where they were not told.
    LivingPoint = Struct.new(:number, :at_ns, :rss, :flags, :sites, :counts, :births) do
      # Is what lived exactly known?
      #: () -> bool
      def full? = flags & LivingPoint::FULL != 0

      #: () -> bool
      def at_end? = flags & LivingPoint::AT_END != 0
    end

    class LivingPoint
      FULL = 1
      AT_END = 2
    end

    # Who kept some objects alive at the end. flags: bits of how the search ended · looked_at: objects it went through · took_ns ·
    # paths: by site, of each object the steps from a root to it: ["Shop::ORDERS (Array of 12,000)", "String"]; [] where none was found.
    Holders = Struct.new(:flags, :looked_at, :took_ns, :paths) do
      # Why there may be paths missing, in words; nil where all was searched.
      #: () -> String?
      def cut = Holders::WORDS.find { |bit, _| flags & bit != 0 }&.last
    end

    class Holders
      WORDS = { 4 => "who holds objects was not looked for: the program has several Ractors", 8 => "who holds objects can't be looked for on this Ruby",
                1 => "the search for who holds objects ended after its 5 s: paths may be missing", 2 => "the search for who holds objects ended after 4,000,000 objects: paths may be missing" }.freeze
    end

    # Of a site's objects that lived at a point, those that were born before the point of this number, and not before the one before
    # that. bytes: theirs, with what they had malloc'ed, by the mean of the site's.
    Births = Struct.new(:site, :point, :count, :bytes)
  end
end
