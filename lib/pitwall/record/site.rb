# frozen_string_literal: true

module Pitwall
  module Record
    # A place in the code, with class and type of the objects allocated there, and what became of them.
    #
    # node: of the stack tree (0 for rows that stand for no place) · type: Ruby's own number of a type (T_STRING is 5) ·
    # class_name: "" for objects that the program never sees · count: objects allocated, of which `freed` were freed and
    # `retained` lived at the end · old: those that survived three collections or more, at which Ruby promotes an object ·
    # total_age, min_age, max_age: in collections, of those freed or retained · slot_bytes: in Ruby's heap · bytes: with what they
    # had malloc'ed · gc_ns: garbage collection charged to the place · retained_bytes: those of `bytes` that belong to what lived at the end,
    # nil where that was not recorded. Where objects were sampled, all but gc_ns is of the sample.
    #
    # What collections had to do for the place's objects, nil where that was not recorded: started_ns: marking time of the runs that its
    # objects brought about · minor_marks, major_marks: young objects that lived when a minor run marked, and all objects at a major one, over all runs ·
    # lived: those that lived at any run, over all · mallocs: freed objects that had memory malloc'ed.
    Site = Struct.new(:id, :node, :type, :class_name, :count, :old, :freed, :total_age, :min_age, :max_age, :slot_bytes, :bytes,
                      :retained, :gc_ns, :retained_bytes, :started_ns, :minor_marks, :major_marks, :lived, :mallocs)

    class Site
      # In the order of a GCWK chunk, after the id.
      WORK = %i[started_ns minor_marks major_marks lived mallocs].freeze
      # In the order of an ALLO chunk, after the id; older recordings end before the last.
      COUNTERS = (members - %i[id node type class_name] - WORK).freeze
      TYPES = { 1 => "T_OBJECT", 2 => "T_CLASS", 3 => "T_MODULE", 4 => "T_FLOAT", 5 => "T_STRING", 6 => "T_REGEXP", 7 => "T_ARRAY",
                8 => "T_HASH", 9 => "T_STRUCT", 10 => "T_BIGNUM", 11 => "T_FILE", 12 => "T_DATA", 13 => "T_MATCH", 14 => "T_COMPLEX",
                15 => "T_RATIONAL", 20 => "T_SYMBOL", 26 => "T_IMEMO", 27 => "T_NODE", 28 => "T_ICLASS" }.freeze
      # Rows that stand for no place, by id: what the VM allocates for itself, what Pitwall did, what came when the table was
      # full, and the cost of collections since the one before which nobody had allocated.
      VM = 1
      PITWALL = 2
      OTHER = 3
      NOBODY = 4
      NAMES = { VM => "(VM internal)", PITWALL => "(Pitwall)", OTHER => "(other sites)", NOBODY => "(nobody)" }.freeze

      # "T_STRING"; "" for rows that stand for no place.
      #: () -> String
      def type_name = type.zero? ? "" : TYPES.fetch(type, "T_#{type}")

      # What a row is called that stands for no place, or nil.
      #: () -> String?
      def special = NAMES[id]

      # Were its objects sampled, where one in so many was? The VM's and Pitwall's are always all counted.
      #: () -> bool
      def sampled? = id > PITWALL && id != NOBODY

      # Were these objects the program's? The VM's and Pitwall's are not.
      #: () -> bool
      def program? = id >= OTHER && id != NOBODY
    end

    # Strings of equal content from one site: `group` is a number that equal contents share, length in bytes, bytes of all of them together
    # with their slots.
    EqualStrings = Struct.new(:group, :site, :length, :count, :bytes)

    # What is known of all objects together. allocated: Ruby's own count from the start to the end, 0 when the process was
    # killed · seen: the program's objects, of which one in so many was followed · untracked: followed ones whose end was not,
    # for lack of memory · flags: bits: ENDED at the first Ractor
    # (Ruby 3.1), MISSED what other Ractors did, BURSTS: looked only now and then, and at no object's end.
    AllocationTotals = Struct.new(:allocated, :seen, :untracked, :flags)

    class AllocationTotals
      ENDED = 1
      MISSED = 2
      BURSTS = 4

      #: () -> bool
      def bursts? = flags & BURSTS != 0
    end
  end
end
