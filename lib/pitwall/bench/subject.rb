# frozen_string_literal: true

module Pitwall
  module Bench
    # One side of a measurement: what runs, where, with which Ruby.
    #
    # name:     label of the side: "A", "main", "ruby 3.4.11"
    # ruby:     the interpreter and its flags: ["/usr/bin/ruby3.1", "--yjit"]
    # env:      variables to set, or with nil to unset
    # dir:      working directory
    # script:   absolute path of the benchmark file, or nil
    # code:     what `-e` gave, or nil
    # command:  a whole command as words, or nil
    # requires: absolute paths to load before the script
    # stub:     a method to empty: "Foo#bar", "Foo.bar", or nil
    # root:     the folder its code lies in, for telling files of one side from those of another; nil: dir
    # facts:    what the report says of the side: {"revision" => "3f2a…", "ruby" => "ruby 3.4.11 (…)"}
    Subject = Struct.new(:name, :ruby, :env, :dir, :script, :code, :command, :requires, :stub, :root, :facts, keyword_init: true)
  end
end
