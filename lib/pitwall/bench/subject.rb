# frozen_string_literal: true

module Pitwall
  module Bench
    # One side of a measurement: the program, its folder and its Ruby.
    #
    # name:     label of the side: "A", "main", "ruby 3.4.11"
    # ruby:     the interpreter and its flags: ["/usr/bin/ruby3.1", "--yjit"]
    # env:      variables to set; a variable with nil is removed
    # dir:      working directory
    # script:   absolute path of the benchmark file, or nil
    # code:     the code of `-e`, or nil
    # command:  a whole command as words, or nil
    # requires: absolute paths to load before the script
    # stub:     a method to replace by an empty one: "Foo#bar", "Foo.bar", or nil
    # root:     the folder of its code, by which files of one side are told from those of another; nil: dir
    # facts:    what the report says of the side: {"revision" => "3f2a…", "ruby" => "ruby 3.4.11 (…)"}
    Subject = Struct.new(:name, :ruby, :env, :dir, :script, :code, :command, :requires, :stub, :root, :facts,
                         keyword_init: true)
  end
end
